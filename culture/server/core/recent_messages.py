"""Authors of the last messages to each channel and nick, to decide who may redact them.

A message is found by its id. Its sender may redact it: the same account, or the same nick if nobody else took that
nick since. Messages of this server are known by their sequence number alone, which takes little memory; so only those
of the present epoch are remembered.
"""

from collections import deque
from typing import NamedTuple

from culture.protocol.names import fold
from culture.server.core.ids import EventId
from culture.server.core.router import Router
from culture.server.core.state import User
from culture.server.events import ChannelRenamed, Joined, Left, Renamed, Said, nick_of

_BUSY_TARGETS = 50  # number of targets that may have all their messages remembered
_NAMES = 10_000
_make = tuple.__new__  # NamedTuple's constructor without its overhead, for the hot path


class Trace(NamedTuple):
    """The author of a message, and the message's sequence number; its text is not kept."""

    seq: int
    source: str
    account: str | None


class _Change(NamedTuple):
    """A change of a nick: to ``new``, or (None) its user left the network."""

    seq: int
    old: str
    new: str | None


# The sequence numbers of the messages, and the source of each, with its account if there is one.
_Traces = tuple[deque[int], deque[str | tuple[str, str]]]


class RecentMessages:
    """Remembers who wrote the last messages to each target (channel or nick), for REDACT.

    At most ``most`` for each target; ``trim`` bounds their total.
    """

    def __init__(self, router: Router, most: int) -> None:
        self._router = router
        self._most = most
        self._epoch = ""
        self._traces: dict[str, _Traces] = {}
        self._elsewhere: dict[str, deque[tuple[EventId, Trace]]] = {}  # messages from other servers
        self._changes: deque[_Change] = deque(maxlen=_NAMES)
        router.subscribe(self._note, Said)
        router.subscribe(self._rename, Renamed)
        router.subscribe(self._leave, Left)
        router.subscribe(self._join, Joined)
        router.subscribe(self._rename_channel, ChannelRenamed)

    def find(self, target: str, msgid: str) -> Trace | None:
        """Return the author of the message with this id to this target.

        None if it is not remembered.
        """
        head, _, number = msgid.rpartition(".")
        if not (number.isascii() and number.isdigit() and len(number) < 20):
            return None
        seq = int(number)
        for stamp, trace in self._elsewhere.get(target, ()):
            if stamp.seq == seq and stamp.msgid == msgid:
                return trace
        seqs, speakers = self._traces.get(target, ((), ()))
        if head.rpartition(".")[2] != self._epoch or number != str(seq) or seq not in seqs:
            return None
        speaker = speakers[seqs.index(seq)]
        return Trace(seq, speaker, None) if isinstance(speaker, str) else Trace(seq, *speaker)

    def forget(self, target: str, trace: Trace) -> None:
        """Drop the record of a redacted message, given by its target and trace."""
        theirs = self._elsewhere.get(target, ())
        if (position := next((at for at, (_, each) in enumerate(theirs) if each is trace), None)) is not None:
            del self._elsewhere[target][position]
            return
        seqs, speakers = self._traces[target]
        position = seqs.index(trace.seq)
        del seqs[position], speakers[position]
        if not seqs:
            del self._traces[target]

    def is_by(self, trace: Trace, user: User) -> bool:
        """Return whether this user wrote the message with this trace.

        The user must be logged in to the author's account, or have been connected with the author's nick ever since
        the message (changes of the nick are followed). An equal nick alone proves nothing: another user may have it.
        """
        if trace.account is not None and trace.account == user.account:
            return True
        return self._nick_now(nick_of(trace.source), trace.seq) == user.nick

    def nick_now(self, trace: Trace) -> str | None:
        """Return the present nick of a message's author; None if the author left, or it is unknown."""
        return self._nick_now(nick_of(trace.source), trace.seq)

    def trim(self) -> None:
        """If too many messages are remembered in all, drop the targets that were silent longest."""
        excess = sum(len(seqs) for seqs, _ in self._traces.values()) - _BUSY_TARGETS * self._most
        if excess <= 0:
            return
        for target in sorted(self._traces, key=lambda each: self._traces[each][0][-1]):
            excess -= len(self._traces.pop(target)[0])
            if excess <= 0:
                return

    def _note(self, message: Said) -> None:
        # Called for every message: it stores nothing new but a number. More would push other data out of the
        # processor's caches, which cost a tenth of a private message.
        stamp = message[0]
        if stamp[1] is not self._epoch and stamp[1] != self._epoch:
            if stamp[1] != self._router.ids.epoch:
                self._note_elsewhere(message)
                return
            self._begin(stamp[1])
        try:
            seqs, speakers = self._traces[message[3]]
        except KeyError:
            seqs, speakers = self._traces[message.target] = (deque(maxlen=self._most), deque(maxlen=self._most))
        seqs.append(stamp[2])
        account = message[5]
        speakers.append(message[1] if account is None else (message[1], account))

    def _note_elsewhere(self, message: Said) -> None:
        """Record a message of another server, placed after the last event of this server."""
        trace = _make(Trace, (self._router.ids.last, message[1], message[5]))
        try:
            self._elsewhere[message[3]].append((message[0], trace))
        except KeyError:
            self._elsewhere[message.target] = deque([(message.id, trace)], self._most)
            if len(self._elsewhere) > _BUSY_TARGETS:
                del self._elsewhere[next(iter(self._elsewhere))]

    def _begin(self, epoch: str) -> None:
        """Forget everything about this server's messages, since its new epoch numbers them anew."""
        self._epoch = epoch
        self._traces.clear()
        self._changes.clear()

    def _nick_now(self, nick: str, since: int) -> str | None:
        """Return the present nick of the user who had ``nick`` at the sequence number ``since``.

        None if the user has left, or ``since`` is too long ago to know.
        """
        changes = self._changes
        if len(changes) == changes.maxlen and changes[0].seq > since:
            return None
        now: str | None = nick
        for seq, old, new in changes:
            if seq > since and now is not None and fold(old) == fold(now):
                now = new
        return now

    def _join(self, event: Joined) -> None:
        # A channel that was empty until now is a new channel of the same name.
        channel = self._router.network.channel(event.channel)
        if channel is not None and len(channel.members) == 1:
            self._traces.pop(channel.name, None)
            self._elsewhere.pop(channel.name, None)

    def _rename(self, event: Renamed) -> None:
        old = nick_of(event.source)
        self._changes.append(_Change(self._router.ids.last, old, event.new))
        self._move(old, event.new)

    def _leave(self, event: Left) -> None:
        nick = nick_of(event.source)
        self._changes.append(_Change(self._router.ids.last, nick, None))
        self._traces.pop(nick, None)
        self._elsewhere.pop(nick, None)

    def _rename_channel(self, event: ChannelRenamed) -> None:
        self._move(event.channel, event.new)

    def _move(self, old: str, new: str) -> None:
        traces = self._traces.pop(old, None)
        if traces is not None:
            self._traces[new] = traces
        theirs = self._elsewhere.pop(old, None)
        if theirs is not None:
            self._elsewhere[new] = theirs
