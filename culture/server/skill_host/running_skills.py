"""The skills of a running server: loads, starts, stops them, switches off failing ones."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from culture.protocol.caps import CAP_NOTIFY
from culture.protocol.message import Message
from culture.runtime import REAL, Runtime
from culture.server.commands import Command, table
from culture.server.context import ServerParts
from culture.server.core import operator_notices
from culture.server.core.encode import wire
from culture.server.core.session import Session
from culture.server.errors import StartError, is_end
from culture.server.skill import Host, Skill, hooks
from culture.server.skill_host.guard import Guard, reason
from culture.server.skill_host.loader import wanted

if TYPE_CHECKING:
    from culture.config.values import Settings
    from culture.server.context import ServerParts


def withdraw(parts: ServerParts, caps: Collection[str]) -> None:
    """Take capabilities away from all sessions, and send ``CAP DEL`` to those with cap-notify.

    ``parts``: the parts of the running server.
    """
    if not caps:
        return
    with parts.turn():
        for session in parts.sessions:
            if not session.caps.enabled.isdisjoint(caps):
                _take(parts, session, caps)
            if CAP_NOTIFY in session.caps.enabled:
                nick = session.nick if session.user is None else session.user.nick
                words = (nick or "*", "DEL", " ".join(sorted(caps)))
                session.push(wire(Message("CAP", words, parts.router.name)))


def _take(parts: ServerParts, session: Session, caps: Collection[str]) -> None:
    session.caps.withdraw(caps)
    session.enable(session.caps.enabled)
    if session.user is not None:
        parts.router.regroup(session.user)


log = logging.getLogger(__name__)


class _SkillState:
    """The state of one skill: its guard and host, its hooks, capabilities and 005 tokens."""

    def __init__(self, guard: Guard, host: Host) -> None:
        self.guard = guard
        self.host = host
        self.skill: Skill | None = None
        self.is_started = False
        self.hooks: list[Callable[[Any], None]] = []
        self.caps: dict[str, str | None] = {}
        self.isupport: list[str] = []


class Skills:
    """All configured skills: made by ``load`` before the server starts, run from start to stop."""

    _parts: "ServerParts"
    _commands: dict[str, Command]
    _offered: Collection[str]

    def __init__(self, *, runtime: Runtime = REAL) -> None:
        self._thread_id = runtime.thread_id
        self._states: dict[str, _SkillState] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = self._thread_id()

    def load(self, parts: "ServerParts", commands: dict[str, Command], offered: Collection[str] = ()) -> None:
        """Make each configured skill and add its verbs to ``commands``.

        ``offered``: the capabilities of the server itself. Raises StartError if a skill cannot be used.
        """
        self._parts, self._commands, self._offered = parts, commands, offered
        for name, kind, settings in wanted(parts.config):
            self._load(name, kind, settings)

    def _load(self, name: str, kind: type[Skill], settings: "Settings") -> None:
        parts, failed = self._parts, partial(self.on_loop, self._switch_off, name)
        state = _SkillState(Guard(name, failed, partial(operator_notices.tell, parts)), Host(parts, name, failed))
        self._states[name] = state
        try:
            self._make(state, kind, settings, self._commands, self._offered)
        except StartError:
            raise
        except BaseException as error:
            self._blame(state, error)

    async def add_first(self, name: str, kind: type[Skill], settings: "Settings") -> None:
        """Make and start a further skill in a running server; it gets each event before the others."""
        self._load(name, kind, settings)
        state = self._states[name]
        self._parts.router.prefer(state.hooks)
        if state.guard.off is None:
            await self._start(state)

    def _make(
        self,
        state: _SkillState,
        kind: type[Skill],
        settings: "Settings",
        commands: dict[str, Command],
        offered: Collection[str],
    ) -> None:
        name, router = state.guard.name, self._parts.router
        state.skill = skill = kind(state.host, settings)
        objects = tuple(skill.places())
        for verb, command in _verbs(name, objects):
            if verb in commands:
                raise StartError(f"the skill {name} wants the verb {verb}, which exists already")
            commands[verb] = command._replace(handler=state.guard.verb(command.handler))
        caps = dict(skill.caps())
        if taken := sorted(caps.keys() & {*offered, *self.caps()}):
            raise StartError(f"the skill {name} offers the capability {taken[0]}, which exists already")
        state.caps, state.isupport = caps, list(skill.isupport())
        for function, kinds in (pair for each in objects for pair in hooks(each)):
            router.subscribe(function, *kinds, failed=state.host.failed)
            state.hooks.append(function)

    def get(self, name: str) -> Skill | None:
        """Return the skill of this name; None if it is not configured or is switched off."""
        state = self._states.get(name)
        return state.skill if state is not None and state.guard.off is None else None

    def has(self, name: str) -> bool:
        """Return whether a skill of this name is configured, even if it is switched off."""
        return name in self._states

    @property
    def off(self) -> dict[str, str]:
        """Return the reasons why skills are switched off, by name of the skill."""
        return {name: state.guard.off for name, state in self._states.items() if state.guard.off is not None}

    def caps(self) -> dict[str, str | None]:
        """Return the capabilities, with values, of the skills that are not switched off."""
        return {cap: value for state in self._working() for cap, value in state.caps.items()}

    def isupport(self) -> list[str]:
        """Return the ISUPPORT tokens (005) of the skills that are not switched off."""
        return [token for state in self._working() for token in state.isupport]

    async def start(self) -> None:
        """Start each skill; one whose ``start`` fails is switched off."""
        self._loop, self._thread = asyncio.get_running_loop(), self._thread_id()
        for state in self._working():
            await self._start(state)

    async def _start(self, state: _SkillState) -> None:
        assert state.skill is not None
        state.is_started = True
        try:
            await state.skill.start()
        except BaseException as error:
            self._blame(state, error)

    async def leave(self, patience: float) -> None:
        """Call ``leave`` of each skill that is not switched off, for at most ``patience`` seconds.

        To be called before any skill is stopped.
        """
        states = [state for state in self._working() if state.is_started]
        await asyncio.gather(*(self._end(state, "leave", patience) for state in states))

    async def stop(self, patience: float) -> None:
        """Stop all started skills, even switched-off ones, for at most ``patience`` seconds."""
        states = [state for state in self._states.values() if state.is_started]
        for state in states:
            state.is_started = False
        await asyncio.gather(*(self._end(state, "stop", patience) for state in states))

    async def _end(self, state: _SkillState, how: Literal["leave", "stop"], patience: float) -> None:
        assert state.skill is not None
        try:
            async with asyncio.timeout(patience):
                await getattr(state.skill, how)()
        except BaseException as error:
            if is_end(error):
                raise
            log.error("the skill %s did not %s: %s", state.guard.name, how, reason(error), exc_info=error)

    def on_loop(self, call: Callable[..., None], *args: object) -> None:
        """Run ``call`` with the arguments in the server's own thread; callable from any thread."""
        if self._loop is None or self._thread_id() == self._thread:
            call(*args)
            return
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:  # the loop is closed
            log.warning("called after the server's end: %s", args)

    def _working(self) -> Iterator[_SkillState]:
        return (state for state in list(self._states.values()) if state.guard.off is None)

    def _blame(self, state: _SkillState, error: BaseException) -> None:
        if is_end(error):
            raise error
        self._switch_off(state.guard.name, error)

    def _switch_off(self, name: str, error: BaseException) -> None:
        """Switch a skill off after an error: it missed events, so only its ``stop`` is still called."""
        state, parts = self._states[name], self._parts
        if state.guard.off is not None:
            return
        for function in state.hooks:
            parts.router.unsubscribe(function)
        state.host.over()
        withdraw(parts, state.caps)
        state.guard.off = why = reason(error)
        operator_notices.tell(parts, f"the skill {name} failed and is switched off until a restart: {why}", error)


def _verbs(name: str, objects: tuple[object, ...]) -> Iterator[tuple[str, Command]]:
    try:
        commands = table(*objects)
    except ValueError as error:
        raise StartError(f"the skill {name} wants a verb twice: {error}") from error
    for verb, command in commands.items():
        if not (verb.isascii() and verb.isalpha() and verb.isupper()):
            raise StartError(f"the skill {name} wants the verb {verb!r}, which must be of the letters A-Z")
        yield verb, command
