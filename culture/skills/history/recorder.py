"""What happens → what is kept of it, and where."""

from culture.protocol.names import fold
from culture.server.events import (
    ChannelRenamed,
    Event,
    Joined,
    Kicked,
    Left,
    ModeSet,
    Parted,
    Redacted,
    Renamed,
    Said,
    TopicSet,
    nick_of,
)
from culture.server.skill import Host, hook, repeatable
from culture.skills.history.entry import conversation, event_entry, party
from culture.skills.history.intake import Intake
from culture.skills.history.writer import Move, Spoken

_make = tuple.__new__  # what a NamedTuple's own constructor does, without the call around it


class Recorder:
    """Hears everything that is kept."""

    def __init__(self, host: Host, intake: Intake) -> None:
        self._host = host
        self._network = host.network
        self._keep = intake.keep
        self._keep_said = intake.keep_said

    @repeatable
    @hook(Said)
    def said(self, said: Said) -> None:
        """A message, to a channel or in private; called for every one, so it does no more than it must."""
        by, target = self._host.by, said.target
        if said.verb == "TAGMSG" and said.is_passing:
            return
        if target[0] == "#":
            closed = said.closed
            if closed is None:
                channel = self._network.channel(target)
                closed = channel is None or not channel.is_open
            spoken = _make(Spoken, (said, None, closed or said.status != ""))
        else:
            spoken = _make(Spoken, (said, self._account(target), False))
        if by is None:
            self._keep(spoken)
        else:
            self._keep_said(spoken, by)

    @hook(Joined, Parted, Kicked, TopicSet, ModeSet)
    def happened(self, event: Joined | Parted | Kicked | TopicSet | ModeSet) -> None:
        """Something in one channel."""
        self._note(event, event.channel)

    @hook(Left, Renamed)
    def moved(self, event: Left | Renamed) -> None:
        """Something in every channel where somebody is, or was."""
        for channel in self._host.concerned:
            self._note(event, channel)

    @hook(ChannelRenamed)
    def renamed(self, event: ChannelRenamed) -> None:
        """The history goes with the channel."""
        self._keep(Move(event.channel, event.new))

    @repeatable
    @hook(Redacted)
    def redacted(self, event: Redacted) -> None:
        """A message was taken back."""
        user = self._network.user(nick_of(event.source))
        account = user.account if user is not None else None
        if event.target[0] == "#":
            self._note(event, event.target)
            return
        entry = event_entry(event, event.target, account, False)
        if entry is not None:
            place = conversation(
                party(account, nick_of(event.source)),
                party(self._account(event.target), event.target),
            )
            self._keep(entry._replace(place=place))

    def _account(self, nick: str) -> str | None:
        """Whose conversation it is: of who has the nick; where nobody does, of the account that it belongs to."""
        user = self._network.user(nick)
        return self._host.owner_of(nick) if user is None else user.account

    def _note(self, event: Event, name: str) -> None:
        channel = self._network.channel(name)
        user = self._network.user(nick_of(getattr(event, "source", "")))
        entry = event_entry(
            event, name, user.account if user is not None else None, channel is None or not channel.is_open
        )
        if entry is not None:
            self._keep(entry._replace(place=fold(name)))
