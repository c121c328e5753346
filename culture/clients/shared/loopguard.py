"""Keeps agents from waking each other without end: what is held back, what replies say of their cause."""

from collections.abc import Mapping, Sequence

from culture.clients.shared import loops
from culture.clients.shared.held import HeldMail, Scope
from culture.clients.shared.inbox import Inbox, Mail
from culture.clients.shared.loops import Limits
from culture.clients.shared.notes import Notes
from culture.clients.shared.work_ports import Say
from culture.config.agents import AgentConfig
from culture.protocol.names import fold, is_channel
from culture.protocol.vocabulary import ChannelMode, ClientTag, UserClass
from culture.runtime import REAL, Runtime
from culture.transport import IRCTransport, Message


class LoopGuard:
    """Judges who may wake the agent, and marks what it says."""

    def __init__(
        self,
        config: AgentConfig,
        inbox: Inbox,
        held: HeldMail,
        notes: Notes,
        transport: IRCTransport,
        say: Say,
        *,
        runtime: Runtime = REAL,
    ) -> None:
        self._nick = config.nick
        self._limits = Limits(
            config.max_hops, config.pair_turns_per_hour, config.channel_turns_per_hour, config.pair_turns_reset
        )
        self._inbox = inbox
        self._held = held
        self._most = config.wake_most
        self._notes = notes
        self._transport = transport
        self._say = say
        self._runtime = runtime
        self._told: set[str] = set()
        self._causes: Sequence[Mail] = ()
        self._worked = False

    def why_held(self, message: Message) -> str | None:
        """Why a message must wait for a person; None when it may wake the agent."""
        if self._most is not None and message.kind is not UserClass.HUMAN and self._place(message) >= self._most:
            return f"one message mentions {len(message.mentions)}, and wakes the first {self._most}"
        hops = loops.hops_of(message.kind, message.tags)
        if self._limits.resets and hops == 0 and message.kind is not UserClass.HUMAN:
            self._let_pairs_go_on(frozenset({fold(message.sender)}))
            lately = loops.Lately()
        else:
            worked_at = self._notes.worked_at if self._limits.resets else None
            lately = self._inbox.lately(message.sender, message.channel, worked_at)
        why = loops.held_back(message.kind, hops, lately, self._limits, stood_down=self.stood_down(message.channel))
        if why is not None and self._limits.resets and loops.is_pair_spent(lately, self._limits):
            self._notes.held_pairs |= {fold(message.sender)}
        return why

    def _let_pairs_go_on(self, senders: frozenset[str]) -> None:
        """Work was done: what the limit of a pair holds of these senders comes with the next turns."""
        for sender in sorted(self._notes.held_pairs & senders):
            self._inbox.release_sender(sender)
            self._told.clear()
        self._notes.held_pairs -= senders

    def held(self, message: Message, why: str) -> None:
        """A message waits: its channel is told once, until a person says how to go on."""
        if self._most is not None and self._place(message) > self._most:
            return  # the first that it does not wake tells the channel
        if fold(message.channel) not in self._told:
            self._told.add(fold(message.channel))
            hint = "" if self.stood_down(message.channel) else f" A person may say: @{self._nick} go on"
            self._say(message.channel, f"I wait: {why}.{hint}", notice=True)

    def _place(self, message: Message) -> int:
        """The number of those whom a message mentions before this agent."""
        nicks = set(map(fold, (self._nick, self._transport.nick)))
        return next((place for place, nick in enumerate(message.mentions) if fold(nick) in nicks), 0)

    def go_on(self, scope: Scope) -> tuple[int, int]:
        """A person wants it to go on: how many messages begin a turn now, and how many others it may read.

        Whoever names nobody and answers the loop guard has not spoken of strangers: theirs are held until the next
        ``go on``. What the loop guard holds goes on as a whole, unless one sender is named.
        """
        if scope.sender:
            mail, said = self._held.release(scope)
            mail += self._inbox.release_sender(scope.sender)
        else:
            was_stood_down, self._notes.stood_down = self._notes.stood_down, False
            self._told.clear()
            mail, said = self._inbox.release(), 0
            if not (mail or was_stood_down):
                mail, said = self._held.release(scope)
        self._inbox.recount()
        return mail, said

    def stood_down(self, place: str) -> bool:
        """Whether only people wake the agent: everywhere, or in this channel."""
        if self._notes.stood_down:
            return True
        channel = self._transport.view.channel(place) if is_channel(place) else None
        return channel is not None and ChannelMode.STAND_DOWN in channel.flags

    def begin(self, mails: Sequence[Mail]) -> None:
        """A turn begins that these messages have caused."""
        self._causes, self._worked = mails, False

    def did(self, blocks: Sequence[Mapping[str, object]]) -> None:
        """The agent did something in the present turn."""
        if self._worked or not any(map(loops.is_work, blocks)):
            return
        self._worked = True
        if self._limits.resets:
            self._notes.worked_at = self._runtime.now()
            self._let_pairs_go_on(self._notes.held_pairs)

    def tags(self) -> dict[str, str]:
        """What the agent says now is marked with its cause and how many replies led to it."""
        hops = loops.hops_after((mail.hops for mail in self._causes), worked=self._worked)
        tags = {ClientTag.HOPS.value: str(hops)}
        if self._causes and not self._causes[0].msgid.startswith("local."):
            tags[ClientTag.CAUSE.value] = self._causes[0].msgid
        return tags
