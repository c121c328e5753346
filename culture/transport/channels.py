"""The channels we want to be in, across connections."""

import logging
from collections.abc import Iterable

from culture.protocol.message import Message as Line
from culture.protocol.names import fold, nearest
from culture.transport.requests import refusal
from culture.transport.session import IrcSession
from culture.transport.types import NotSent, OnOutside, guarded

log = logging.getLogger(__name__)


class JoinedChannels:
    """Those of the configuration, and those joined since; left or kicked from, they are wanted no more."""

    def __init__(self, names: Iterable[str], on_outside: OnOutside | None) -> None:
        self._wanted = {fold(name): name for name in names}
        self._keys: dict[str, str] = {}
        self._on_outside = on_outside

    @property
    def wanted(self) -> list[str]:
        """The names."""
        return list(self._wanted.values())

    def joined(self, channel: str) -> None:
        """We are in it, whoever wanted that."""
        self._wanted.setdefault(fold(channel), channel)

    def parted(self, channel: str) -> None:
        """We have left it."""
        self._wanted.pop(fold(channel), None)

    def renamed(self, old: str, new: str) -> None:
        """It has another name."""
        if self._wanted.pop(fold(old), None) is not None:
            self._wanted[fold(new)] = new

    def outside(self, channel: str, reason: str) -> None:
        """We should be in it and are not."""
        log.warning("not in %s: %s", channel, reason)
        guarded(self._on_outside, channel, reason)

    async def enter(self, session: IrcSession, channel: str, key: str = "") -> None:
        """Join one; ``NotSent`` with the server's words when it is not possible."""
        key = key or self._keys.get(fold(channel), "")
        if "," in channel or "," in key or channel == "0":
            raise NotSent(f"{channel!r} is not a channel")
        items = await session.ask(Line("JOIN", (channel, key) if key else (channel,)))
        if session.view.channel(channel) is None:
            refused = refusal(items) or NotSent("the server did not let us in")
            raise NotSent(hinted(refused.reason, channel, session.view.channels), refused.code)
        if key:
            self._keys[fold(channel)] = key
        if session.is_ours:
            await session.ask(Line("MODE", (channel,)))

    async def enter_all(self, session: IrcSession) -> None:
        """Join all that are wanted and that we are not in."""
        for name in self.wanted:
            try:
                if session.view.channel(name) is None:
                    await self.enter(session, name)
                elif session.is_ours:
                    await session.ask(Line("MODE", (name,)))
            except NotSent as refused:
                if refused.uncertain:
                    raise
                self.outside(name, refused.reason)


def hinted(reason: str, name: str, known: Iterable[str]) -> str:
    """The server's words, with what was probably meant where it did not say so itself."""
    if "did you mean" in reason:
        return reason
    near = nearest(name, (each for each in known if fold(each) != fold(name)))
    return reason if near is None else f"{reason}; did you mean {near}?"
