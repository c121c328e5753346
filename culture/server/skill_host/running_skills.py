"""The skills of a running server: made, started, stopped, and switched off when they fail."""

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from culture.protocol.caps import CAP_NOTIFY
from culture.protocol.message import Message
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
    """Take capabilities from every session that has them, and tell those who want to know: ``CAP DEL``."""
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


class _Place:
    """What one skill has of the server."""

    def __init__(self, guard: Guard, host: Host) -> None:
        self.guard = guard
        self.host = host
        self.skill: Skill | None = None
        self.is_started = False
        self.hooks: list[Callable[[Any], None]] = []
        self.caps: dict[str, str | None] = {}
        self.isupport: list[str] = []


class Skills:
    """Those that are wanted; ``load`` before the start, then ``start`` and ``stop``."""

    _parts: "ServerParts"
    _commands: dict[str, Command]
    _offered: Collection[str]

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.get_ident()

    def load(self, parts: "ServerParts", commands: dict[str, Command], offered: Collection[str] = ()) -> None:
        """Make each skill and add its verbs to the table; whatever cannot be wanted so is a StartError.

        ``offered`` are the capabilities that the server has without them.
        """
        self._parts, self._commands, self._offered = parts, commands, offered
        for name, kind, settings in wanted(parts.config):
            self._load(name, kind, settings)

    def _load(self, name: str, kind: type[Skill], settings: "Settings") -> None:
        parts, failed = self._parts, partial(self.on_loop, self._switch_off, name)
        place = _Place(Guard(name, failed, partial(operator_notices.tell, parts)), Host(parts, name, failed))
        self._places[name] = place
        try:
            self._make(place, kind, settings, self._commands, self._offered)
        except StartError:
            raise
        except BaseException as error:
            self._blame(place, error)

    async def add_first(self, name: str, kind: type[Skill], settings: "Settings") -> None:
        """One more while the server runs, which hears of everything before the others."""
        self._load(name, kind, settings)
        place = self._places[name]
        self._parts.router.prefer(place.hooks)
        if place.guard.off is None:
            await self._start(place)

    def _make(
        self,
        place: _Place,
        kind: type[Skill],
        settings: "Settings",
        commands: dict[str, Command],
        offered: Collection[str],
    ) -> None:
        name, router = place.guard.name, self._parts.router
        place.skill = skill = kind(place.host, settings)
        objects = tuple(skill.places())
        for verb, command in _verbs(name, objects):
            if verb in commands:
                raise StartError(f"the skill {name} wants the verb {verb}, which exists already")
            commands[verb] = command._replace(handler=place.guard.verb(command.handler))
        caps = dict(skill.caps())
        if taken := sorted(caps.keys() & {*offered, *self.caps()}):
            raise StartError(f"the skill {name} offers the capability {taken[0]}, which exists already")
        place.caps, place.isupport = caps, list(skill.isupport())
        for function, kinds in (found for each in objects for found in hooks(each)):
            router.subscribe(function, *kinds, failed=place.host.failed)
            place.hooks.append(function)

    def get(self, name: str) -> Skill | None:
        """The skill of this name, while it works."""
        place = self._places.get(name)
        return place.skill if place is not None and place.guard.off is None else None

    def has(self, name: str) -> bool:
        """Was a skill of this name wanted, whether it works or not?"""
        return name in self._places

    @property
    def off(self) -> dict[str, str]:
        """Those that are switched off, and why."""
        return {name: place.guard.off for name, place in self._places.items() if place.guard.off is not None}

    def caps(self) -> dict[str, str | None]:
        """The capabilities they offer."""
        return {cap: value for place in self._working() for cap, value in place.caps.items()}

    def isupport(self) -> list[str]:
        """What 005 says about them."""
        return [token for place in self._working() for token in place.isupport]

    async def start(self) -> None:
        """Start each; one that cannot is switched off."""
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        for place in self._working():
            await self._start(place)

    async def _start(self, place: _Place) -> None:
        assert place.skill is not None
        place.is_started = True
        try:
            await place.skill.start()
        except BaseException as error:
            self._blame(place, error)

    async def leave(self, patience: float) -> None:
        """Let each that works say goodbye, within so many seconds; none stops before all have."""
        places = [place for place in self._working() if place.is_started]
        await asyncio.gather(*(self._end(place, "leave", patience) for place in places))

    async def stop(self, patience: float) -> None:
        """Stop all that were started, also those that are switched off, within so many seconds."""
        places = [place for place in self._places.values() if place.is_started]
        for place in places:
            place.is_started = False
        await asyncio.gather(*(self._end(place, "stop", patience) for place in places))

    async def _end(self, place: _Place, how: Literal["leave", "stop"], patience: float) -> None:
        assert place.skill is not None
        try:
            async with asyncio.timeout(patience):
                await getattr(place.skill, how)()
        except BaseException as error:
            if is_end(error):
                raise
            log.error("the skill %s did not %s: %s", place.guard.name, how, reason(error), exc_info=error)

    def on_loop(self, call: Callable[..., None], *args: object) -> None:
        """Call it on the server's own thread, whichever this is."""
        if self._loop is None or threading.get_ident() == self._thread:
            call(*args)
            return
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:  # the loop is closed: nobody is left to hear of it
            log.warning("said after the end: %s", args)

    def _working(self) -> Iterator[_Place]:
        return (place for place in list(self._places.values()) if place.guard.off is None)

    def _blame(self, place: _Place, error: BaseException) -> None:
        if is_end(error):
            raise error
        self._switch_off(place.guard.name, error)

    def _switch_off(self, name: str, error: BaseException) -> None:
        """Let nothing of it be called any more but ``stop``: what it missed from here on would make it wrong."""
        place, parts = self._places[name], self._parts
        if place.guard.off is not None:
            return
        for function in place.hooks:
            parts.router.unsubscribe(function)
        place.host.over()
        withdraw(parts, place.caps)
        place.guard.off = why = reason(error)
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
