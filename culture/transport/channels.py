"""The channels to be in: joined at start, rejoined after a reconnect."""

import logging
from collections.abc import Iterable

from culture.protocol.message import Message as Line
from culture.protocol.names import fold, nearest
from culture.transport.requests import refusal
from culture.transport.session import IrcSession
from culture.transport.types import NotSent, OnOutside, call_safely

log = logging.getLogger(__name__)


class JoinedChannels:
    """The channels to be in: configured or joined since, without those left or kicked from."""

    def __init__(self, names: Iterable[str], on_outside: OnOutside | None) -> None:
        self._wanted = {fold(name): name for name in names}
        self._keys: dict[str, str] = {}
        self._on_outside = on_outside

    @property
    def wanted(self) -> list[str]:
        """Names of the channels that we should be in, whether or not we are."""
        return list(self._wanted.values())

    def joined(self, channel: str) -> None:
        """Record that we joined a channel, by our own command or made to by the server."""
        self._wanted.setdefault(fold(channel), channel)

    def parted(self, channel: str) -> None:
        """Record that we left a channel, so that it is not rejoined after a reconnect."""
        self._wanted.pop(fold(channel), None)

    def renamed(self, old: str, new: str) -> None:
        """Record that the channel ``old`` is now called ``new``, so that ``new`` is rejoined."""
        if self._wanted.pop(fold(old), None) is not None:
            self._wanted[fold(new)] = new

    def report_outside(self, channel: str, reason: str) -> None:
        """Log that we are not in a channel that we should be in, and call ``on_outside``.

        ``reason``: why we are not.
        """
        log.warning("not in %s: %s", channel, reason)
        call_safely(self._on_outside, channel, reason)

    async def join(self, session: IrcSession, channel: str, key: str = "") -> None:
        """Join a channel in a session; raise ``NotSent`` with the server's reason if that fails.

        ``key``: the channel's password, by default the one that was used last.
        """
        key = key or self._keys.get(fold(channel), "")
        if "," in channel or "," in key or channel == "0":
            raise NotSent(f"{channel!r} is not a channel")
        items = await session.ask(Line("JOIN", (channel, key) if key else (channel,)))
        if session.view.channel(channel) is None:
            refused = refusal(items) or NotSent("the server did not let us in")
            raise NotSent(with_hint(refused.reason, channel, session.view.channels), refused.code)
        if key:
            self._keys[fold(channel)] = key
        if session.is_ours:
            await session.ask(Line("MODE", (channel,)))

    async def join_all(self, session: IrcSession) -> None:
        """Join all wanted channels that we are not in; report each channel that cannot be joined."""
        for name in self.wanted:
            try:
                if session.view.channel(name) is None:
                    await self.join(session, name)
                elif session.is_ours:
                    await session.ask(Line("MODE", (name,)))
            except NotSent as refused:
                if refused.uncertain:
                    raise
                self.report_outside(name, refused.reason)


def with_hint(reason: str, name: str, names: Iterable[str]) -> str:
    """Return ``reason`` with "did you mean ...?" if one of ``names`` is similar to ``name``.

    A reason that already contains such a question is returned unchanged.
    """
    if "did you mean" in reason:
        return reason
    near = nearest(name, (each for each in names if fold(each) != fold(name)))
    return reason if near is None else f"{reason}; did you mean {near}?"
