"""Who said the last messages to each channel and nick: enough to know whether they may take them back."""

from collections import deque
from typing import NamedTuple

from culture.protocol.names import fold
from culture.server.events import ChannelRenamed, Left, Renamed, Said, nick_of
from culture.server.ids import Stamp
from culture.server.router import Router
from culture.server.state import User

_BUSY_TARGETS = 50  # so many may have all their messages remembered
_NAMES = 10_000


class Trace(NamedTuple):
    """A message that was said, without its text."""

    id: Stamp
    source: str
    account: str | None


class _Change(NamedTuple):
    """A nick that became another, or nobody's."""

    when: tuple[float, int]
    old: str
    new: str | None


class Recent:
    """Remembers up to ``most`` messages per target; ``trim`` keeps the whole within bounds."""

    def __init__(self, router: Router, most: int) -> None:
        self._most = most
        self._traces: dict[str, deque[tuple[Stamp, str, str | None]]] = {}
        self._changes: deque[_Change] = deque(maxlen=_NAMES)
        router.subscribe(self._note, Said)
        router.subscribe(self._rename, Renamed)
        router.subscribe(self._leave, Left)
        router.subscribe(self._rename_channel, ChannelRenamed)

    def find(self, target: str, msgid: str) -> Trace | None:
        """The message of this id that was said to the target, spelled as the network does."""
        number = msgid.rpartition(".")[2]
        if not (number.isascii() and number.isdigit() and len(number) < 20):
            return None
        seq = int(number)
        for row in self._traces.get(target, ()):
            if row[0].seq == seq and row[0].msgid == msgid:
                return Trace(*row)
        return None

    def forget(self, target: str, trace: Trace) -> None:
        """It was taken back."""
        traces = self._traces[target]
        traces.remove(trace)
        if not traces:
            del self._traces[target]

    def is_by(self, trace: Trace, user: User) -> bool:
        """Did this user say it? A nick alone proves nothing: others may have taken it over."""
        if trace.account is not None and trace.account == user.account:
            return True
        return self._nick_now(nick_of(trace.source), (trace.id.at, trace.id.seq)) == user.nick

    def trim(self) -> None:
        """Forget those targets to which nobody has spoken for longest, when there is too much in all."""
        excess = sum(map(len, self._traces.values())) - _BUSY_TARGETS * self._most
        if excess <= 0:
            return
        for target in sorted(self._traces, key=lambda each: self._traces[each][-1][0].at):
            excess -= len(self._traces.pop(target))
            if excess <= 0:
                return

    def _note(self, said: Said) -> None:
        # Called for every message: by position, and as a plain tuple, it takes half the time.
        try:
            traces = self._traces[said[3]]
        except KeyError:
            traces = self._traces[said.target] = deque(maxlen=self._most)
        traces.append((said[0], said[1], said[5]))

    def _nick_now(self, nick: str, since: tuple[float, int]) -> str | None:
        """The present nick of whoever had this one then; None when they left or it is too long ago to tell."""
        changes = self._changes
        if len(changes) == changes.maxlen and changes[0].when > since:
            return None
        now: str | None = nick
        for when, old, new in changes:
            if when > since and now is not None and fold(old) == fold(now):
                now = new
        return now

    def _rename(self, event: Renamed) -> None:
        old = nick_of(event.source)
        self._changes.append(_Change((event.id.at, event.id.seq), old, event.new))
        self._move(old, event.new)

    def _leave(self, event: Left) -> None:
        nick = nick_of(event.source)
        self._changes.append(_Change((event.id.at, event.id.seq), nick, None))
        self._traces.pop(nick, None)

    def _rename_channel(self, event: ChannelRenamed) -> None:
        self._move(event.channel, event.new)

    def _move(self, old: str, new: str) -> None:
        traces = self._traces.pop(old, None)
        if traces is not None:
            self._traces[new] = traces
