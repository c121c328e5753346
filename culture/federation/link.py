"""One side of a link, without its socket: who may speak when, and what each line is."""

import logging
from collections.abc import Callable
from enum import Enum
from typing import Protocol

from culture.config.links import Link as Settings
from culture.federation import codec
from culture.federation.codec import Garbled
from culture.federation.plain import Plain, read_plain
from culture.federation.roster import Roster
from culture.federation.trust import UNVOUCHED_TAG, NotTheirs
from culture.protocol.message import Message, ProtocolError
from culture.protocol.names import is_channel, short_name

log = logging.getLogger(__name__)

VERSION = 1
OLDEST = 1
"""The versions of the protocol that are spoken here."""


class Stage(Enum):
    """How far a link has come."""

    GREETING = "greeting"
    """Neither side has shown who it is."""
    SYNCING = "syncing"
    """Both have; they tell each other what they know."""
    LIVE = "live"
    """What happens is told as it happens."""
    CLOSED = "closed"


class Refusal(Exception):
    """The peer is not let in; the text is for it to read."""


class Admission(Protocol):
    """Lets peers in."""

    def greeting(self, link: "Link") -> tuple[Message, Message]:
        """Our PASS and SERVER."""

    def admit(self, link: "Link", name: str, secret: str) -> Settings:
        """Who the peer is; raises Refusal."""

    def admitted(self, link: "Link") -> None:
        """Both sides have shown who they are."""

    def agreed(self, link: "Link", version: int, words: tuple[str, ...]) -> None:
        """The peer has said what it speaks; raises Refusal."""


class Presence(Protocol):
    """Knows who is on the mesh."""

    def link_state(self, link: "Link", line: Message) -> None:
        """Who is linked to whom."""

    def roster(self, link: "Link", roster: Roster) -> None:
        """The users of a server."""

    def channel(self, link: "Link", line: Message) -> None:
        """What a channel is set to."""

    def wanted(self, link: "Link", server: str) -> None:
        """The peer wants to know the users of a server."""


class Backfill(Protocol):
    """Keeps count of what was told."""

    def begun(self, link: "Link", log: str) -> None:
        """The peer is linked; this is the name of its log."""

    def resumed(self, link: "Link", log: str, position: int) -> None:
        """The peer asks for what it missed: it has read this log up to here."""

    def caught_up(self, link: "Link", position: int) -> None:
        """The peer has told its log up to here."""

    def acknowledged(self, link: "Link", position: int, told: int) -> None:
        """The peer has everything up to here on disk, and has told its own log up to there."""

    def gap(self, link: "Link", lost: int) -> None:
        """So many messages are no longer kept by the peer."""


class Sharing(Protocol):
    """Knows which channels cross which links."""

    def joined(self, link: "Link", line: Message) -> None:
        """Members of a channel that crosses again."""

    def parted(self, link: "Link", line: Message) -> None:
        """Members of a channel that does not cross any more."""

    def wanted(self, link: "Link", channel: str) -> None:
        """The peer wants to know who is in a channel."""


class Relay(Protocol):
    """Takes what happened elsewhere."""

    def event(self, link: "Link", line: Message) -> None:
        """Something happened."""


class Courier(Protocol):
    """Carries private messages."""

    def custody(self, link: "Link", id: str) -> None:
        """The peer has a private message on disk."""


class Messages(Protocol):
    """Takes messages to channels."""

    def heard_plain(self, link: "Link", said: Plain) -> None:
        """One in its commonest form."""


class Core(Protocol):
    """What a link asks of the server it belongs to."""

    @property
    def admission(self) -> Admission:
        """Lets peers in."""

    @property
    def presence(self) -> Presence:
        """Knows who is on the mesh."""

    @property
    def backfill(self) -> Backfill:
        """Keeps count."""

    @property
    def sharing(self) -> Sharing:
        """Knows which channels cross."""

    @property
    def relay(self) -> Relay:
        """Takes events."""

    @property
    def messages(self) -> Messages:
        """Takes messages to channels."""

    @property
    def courier(self) -> Courier:
        """Carries private messages."""


class Link:
    """The lines of one link, in both directions."""

    def __init__(
        self,
        core: Core,
        send: Callable[[bytes], None],
        close: Callable[[str], None],
        settings: Settings | None = None,
    ) -> None:
        self._core = core
        self.send_bytes = send
        self._close = close
        self.settings: Settings | None = settings
        self.stage = Stage.GREETING
        self.is_dialled = settings is not None
        self.name = settings.name if settings is not None else ""
        self.shows = settings.secret if settings is not None else ""
        """The secret that we show."""
        self.identity = ("", "")
        """The peer's log and epoch: another server of its name has others."""
        self.is_foreign = False
        """Does the peer speak another version of the protocol?"""
        self.why = ""
        """Why the link was refused or ended."""
        self.description = ""
        self.log = ""
        """The name of the peer's log."""
        self.read = 0
        """How far the peer's log has been read, on this link."""
        self.sent = 0
        """How far our log has been told, on this link."""
        self.acked = 0
        """How far the peer has our log on disk."""
        self.confirmed = 0
        """How far we told the peer that we have its."""
        self._secret: str | None = None
        self._roster: Roster | None = None
        self.is_resumed = False
        """Has the peer asked for what it missed?"""
        self.shared: set[str] = set()
        """While it is told what it missed: the messages that came from it."""
        self.told: set[str] = set()
        """The private messages that went this way since the link came up."""
        self.shown: set[str] = set()
        """Where only some channels cross: the users that the peer was told of."""

    @property
    def peer(self) -> str:
        """The first label of the peer's name."""
        return short_name(self.name)

    @property
    def trust(self) -> Settings:
        """What the settings say of this link; only once the peer is known."""
        if self.settings is None:
            raise RuntimeError("not linked yet")
        return self.settings

    def send(self, line: Message) -> None:
        """Tell the peer."""
        self.send_bytes(bytes(line))

    def greet(self) -> None:
        """Begin, having dialled."""
        if self.settings is not None:
            for line in self._core.admission.greeting(self):
                self.send(line)

    def end(self, reason: str) -> None:
        """Close, and tell the peer why."""
        if self.stage is not Stage.CLOSED:
            self.why = reason
            self.send(Message("ERROR", (reason,)))
            self.stage = Stage.CLOSED
            self._close(reason)

    def take(self, text: str) -> None:
        """One line of the peer's, as it came."""
        said = read_plain(text) if self.stage is Stage.LIVE and self._roster is None else None
        self.receive(Message.parse(text) if said is None else said)

    def receive(self, line: Message | Plain) -> None:
        """One line of the peer's; what it may not say ends this link and nothing else."""
        if self.stage is Stage.CLOSED:
            return
        try:
            if isinstance(line, Plain):
                self._core.messages.heard_plain(self, line)
            elif self.stage is Stage.GREETING:
                self._greeted(line)
            else:
                self._told(line)
        except NotTheirs:
            pass
        except Refusal as refusal:
            self.end(str(refusal))
        except (ProtocolError, ValueError, KeyError, IndexError) as error:
            log.warning("%s breaks the protocol: %s", self.name or "a peer", error)
            self.end(f"Protocol error: {error}")

    def _greeted(self, line: Message) -> None:
        match line.verb:
            case "PASS" if line.params:
                self._secret = line.params[0]
            case "SERVER" if len(line.params) >= 3:
                self.introduce(line.params[0], self._secret, line.params[-1])
            case "ERROR":
                self._ended(line)
            case "NOTICE" | "PING":
                pass
            case _:
                raise Refusal("PASS and SERVER come first")

    def introduce(self, name: str, secret: str | None, description: str) -> None:
        """The peer has shown who it is."""
        if secret is None:
            raise Refusal("PASS comes before SERVER")
        self.settings = self._core.admission.admit(self, name, secret)
        self.name, self.description = name, description
        if not self.is_dialled:
            for line in self._core.admission.greeting(self):
                self.send(line)
        self._secret = None
        self.stage = Stage.SYNCING
        self._core.admission.admitted(self)

    def _ended(self, line: Message) -> None:
        """The peer says why it goes; whoever may read the log is told once for each reason."""
        self.stage, self.why = Stage.CLOSED, " ".join(line.params) or "error"
        self._close(self.why)

    def _told(self, line: Message) -> None:
        if not self.log:
            self._agreed(line)
        elif self._roster is not None and line.verb in ("NICK", "NJOIN"):
            self._roster.take(line)
        elif line.verb in codec.VERBS:
            self._core.relay.event(self, line)
        else:
            self._managed(line)

    def _agreed(self, line: Message) -> None:
        """Before anything else each side says what it speaks."""
        match line.verb, line.params:
            case "LINK", (version, *words) if words and words[0]:
                self._core.admission.agreed(self, int(version), tuple(words))
                self._core.backfill.begun(self, words[0])
            case "ERROR", _:
                self._ended(line)
            case "PING" | "PONG", _:
                pass
            case _:
                raise Refusal("LINK comes first")

    def _managed(self, line: Message) -> None:
        core = self._core
        match line.verb, line.params:
            case "LINK", _:
                raise Garbled("LINK comes once")
            case "LINKSTATE", _:
                core.presence.link_state(self, line)
            case "ROSTER", (name, epoch, version):
                self._roster = Roster(short_name(name), name, epoch, int(version))
                self._roster.is_unvouched = UNVOUCHED_TAG in line.tags
            case "ENDROSTER", _:
                roster, self._roster = self._roster, None
                if roster is None:
                    raise Garbled("ENDROSTER without ROSTER")
                core.presence.roster(self, roster)
            case "CHANNEL", _:
                core.presence.channel(self, line)
            case "RESUME", (own, position):
                core.backfill.resumed(self, own, int(position))
            case "EOBACKFILL", (position,):
                core.backfill.caught_up(self, int(position))
            case "ACK", (position, told):
                core.backfill.acknowledged(self, int(position), int(told))
            case "CUSTODY", (id,):
                core.courier.custody(self, id)
            case "WANT", (channel,) if is_channel(channel):
                core.sharing.wanted(self, channel)
            case "WANT", (server,):
                core.presence.wanted(self, server)
            case "MEMBERS", (_, _):
                core.sharing.joined(self, line)
            case "NPART", (_, _):
                core.sharing.parted(self, line)
            case "GAP", (lost,):
                core.backfill.gap(self, int(lost))
            case "PING", _:
                self.send(Message("PONG", line.params))
            case "ERROR", _:
                self._ended(line)
            case (("PONG" | "EOB"), _):
                pass
            case _:
                log.info("%s says %s, which is unknown here", self.name, line.verb)
