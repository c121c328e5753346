"""The skills of a running server: found, started, guarded, and switched off when they fail."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib.metadata import entry_points
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn

from culture.config.model import ServerConfig
from culture.config.skills import Builtin
from culture.config.values import Settings, checked
from culture.protocol.message import Message
from culture.server import operators
from culture.server.commands import Command, Later, table
from culture.server.errors import Failed, Refused, StartError
from culture.server.skill import Host, Skill, hooks

if TYPE_CHECKING:
    from culture.server.context import Context, Parts

log = logging.getLogger(__name__)

GROUP = "culture.skills"
_FORGIVEN = 2  # failures of a verb: a client that finds a way to cause one must not take the skill from everybody


class Skills:
    """Those that are wanted; ``load`` before the start, then ``start`` and ``stop``."""

    def __init__(self) -> None:
        self._skills: dict[str, Skill] = {}
        self._off: dict[str, str] = {}
        self._failures: Counter[str] = Counter()
        self._parts: Parts | None = None
        self._commands: dict[str, Command] = {}
        self._verbs: dict[str, list[str]] = {}

    def load(self, parts: "Parts", commands: dict[str, Command]) -> None:
        """Make each skill and add its verbs to the table; whatever cannot be wanted so is a StartError."""
        self._parts, self._commands = parts, commands
        for name, wanted in _wanted(parts.config).items():
            kind = _find(name)
            settings = wanted if isinstance(wanted, Settings) else _settings(kind, name, wanted)
            try:
                skill = kind(Host(parts, name, partial(self._fail, name)), settings)
                self._add(skill, name)
            except StartError:
                raise
            except Exception as error:
                self._fail(name, error)

    def _add(self, skill: Skill, name: str) -> None:
        assert self._parts is not None
        self._skills[name] = skill
        for verb, command in table(*skill.places()).items():
            if verb in self._commands:
                raise StartError(f"the skill {name} wants the verb {verb}, which exists already")
            self._commands[verb] = command._replace(handler=partial(self._guarded, name, command.handler))
            self._verbs.setdefault(name, []).append(verb)
        for place in skill.places():
            for function, kinds in hooks(place):
                self._parts.router.subscribe(function, *kinds, failed=partial(self._fail, name))

    def get(self, name: str) -> Skill | None:
        """The skill of this name, while it works."""
        return None if name in self._off else self._skills.get(name)

    @property
    def off(self) -> Mapping[str, str]:
        """Those that are switched off, and why."""
        return self._off

    def caps(self) -> dict[str, str | None]:
        """The capabilities they offer."""
        return dict(chain.from_iterable(skill.caps().items() for skill in self._working()))

    def isupport(self) -> list[str]:
        """What 005 says about them."""
        return [token for skill in self._working() for token in skill.isupport()]

    async def start(self) -> None:
        """Start each; one that cannot is switched off."""
        for name, skill in list(self._skills.items()):
            if name not in self._off:
                try:
                    await skill.start()
                except Exception as error:
                    self._fail(name, error)

    async def stop(self, patience: float) -> None:
        """Stop each within so many seconds, also those that are switched off."""
        for name, skill in self._skills.items():
            try:
                async with asyncio.timeout(patience):
                    await skill.stop()
            except Exception:
                log.exception("the skill %s did not stop", name)

    def _working(self) -> list[Skill]:
        return [skill for name, skill in self._skills.items() if name not in self._off]

    def _fail(self, name: str, error: BaseException) -> None:
        """Switch it off: what it missed from here on would make it wrong."""
        if name in self._off:
            return
        why = f"{type(error).__name__}: {error}"
        log.error("the skill %s failed", name, exc_info=error)
        self._off[name] = why
        parts = self._parts
        assert parts is not None
        skill = self._skills.get(name)
        if skill is not None:
            for place in skill.places():
                for function, _ in hooks(place):
                    parts.router.unsubscribe(function)
        for verb in self._verbs.get(name, ()):
            self._commands[verb] = Command(verb, partial(_refuse, name), 0, False)
        operators.tell(parts, f"the skill {name} failed and is switched off until a restart: {why}")

    def _guarded(self, name: str, handler: Callable[..., Any], ctx: "Context", message: Message) -> Any:
        """Run a verb of the skill; its failure is the client's answer and not the end of the session."""
        return self._answered(name, message, partial(handler, ctx, message))

    def _answered(self, name: str, message: Message, answer: Callable[[], Any]) -> Any:
        try:
            later = answer()
        except (Refused, Failed):
            raise
        except Exception as error:
            self._forgive(name, message, error)
        if isinstance(later, Later):
            then = later.then
            return Later(
                self._waited(name, message, later.work),
                lambda result: self._answered(name, message, partial(_continue, then, result)),
            )
        return later

    async def _waited(self, name: str, message: Message, work: Awaitable[Any]) -> Any:
        """The result, or what to raise in its place."""
        try:
            return await work
        except (Refused, Failed) as declined:
            return declined
        except Exception as error:
            try:
                self._forgive(name, message, error)
            except Failed as failed:
                return failed

    def _forgive(self, name: str, message: Message, error: Exception) -> NoReturn:
        self._failures[name] += 1
        if self._failures[name] > _FORGIVEN:
            self._fail(name, error)
        else:
            log.error("%s of the skill %s failed", message.verb, name, exc_info=error)
            assert self._parts is not None
            operators.tell(self._parts, f"{message.verb} of the skill {name} failed: {type(error).__name__}: {error}")
        raise Failed(message.verb, "INTERNAL_ERROR", text="This went wrong here; the operators were told") from error


def _continue(then: Callable[[Any], Any], result: Any) -> Any:
    if isinstance(result, Refused | Failed):
        raise result
    return then(result)


def _refuse(name: str, ctx: "Context", message: Message) -> NoReturn:
    raise Failed(message.verb, "SKILL_OFF", text=f"{name} is switched off after a failure; ask an operator")


def _wanted(config: ServerConfig) -> Mapping[str, Settings | dict[str, Any]]:
    """The built-in ones that are on, then those of ``skills``."""
    ours: dict[str, Builtin] = {"history": config.history, "logger": config.logger, "urlindex": config.urlindex}
    return {name: settings for name, settings in ours.items() if settings.enabled} | dict(config.skills)


def _find(name: str) -> type[Skill]:
    found = [*entry_points(group=GROUP, name=name)]
    if not found:
        known = ", ".join(sorted({each.name for each in entry_points(group=GROUP)}))
        raise StartError(f"skills: there is no skill called {name}; installed are {known or 'none'}")
    try:
        kind = found[0].load()
    except Exception as error:
        raise StartError(f"skills: {name} ({found[0].value}) cannot be loaded: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, Skill)):
        raise StartError(f"skills: {name} ({found[0].value}) is not a culture.server.skill.Skill")
    return kind


def _settings(kind: type[Skill], name: str, wanted: Mapping[str, Any]) -> Settings:
    try:
        return checked(kind.Settings, wanted)
    except ValueError as error:
        raise StartError(f"skills.{name}: {error}") from error
