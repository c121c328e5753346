"""One side of a link, without its socket: who may speak when, and what each line is."""

import logging
from collections.abc import Callable
from enum import Enum

from culture.config.links import LinkConfig as Settings
from culture.federation import codec
from culture.federation.codec.fields import Garbled, is_epoch, number
from culture.federation.core import Core, Refusal
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


_MOST_NAMED, _LONGEST_NAMED = 20, 40
_LONGEST_REASON = 200
_MOST_WARNINGS = 20
_LIVE, _CLOSED = Stage.LIVE, Stage.CLOSED  # an enum's member takes its time to be looked up


class Link:
    """The lines of one link, in both directions."""

    MARK = "lag"
    """With a PING: its PONG tells how long the way is."""

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
        self.peer = short_name(self.name)
        """The first label of the peer's name."""
        self.shows = settings.secret if settings is not None else ""
        """The secret that we show."""
        self.identity = ("", "")
        """The peer's log and epoch: another server of its name has others."""
        self.is_foreign = False
        """Does the peer speak another version of the protocol?"""
        self.why = ""
        """Why the link was refused or ended."""
        self.description = ""
        self.caps: frozenset[str] = frozenset()
        """What the peer can beyond its version."""
        self.unknown = 0
        """How many lines it said that nobody here knows."""
        self._named: set[str] = set()
        self._warnings = 0
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
        self.leaving = ""
        """Why the peer is about to go, once it has said so."""
        self._secret: str | None = None
        self._roster: Roster | None = None
        self.echo = False
        """Has a PONG with our mark come?"""
        self.is_resumed = False
        """Has the peer asked for what it missed?"""
        self.shared: set[str] = set()
        """While it is told what it missed: the messages that came from it."""
        self.told: set[str] = set()
        """The private messages that went this way since the link came up."""
        self.answered: set[str] = set()
        """What the peer asked for among the lines of one read."""
        self.shown: set[str] = set()
        """Where only some channels cross: the users that the peer was told of."""

    @property
    def trust(self) -> Settings:
        """What the settings say of this link; only once the peer is known."""
        if self.settings is None:
            raise RuntimeError("not linked yet")
        return self.settings

    def send(self, line: Message) -> None:
        """Tell the peer, if it knows such lines."""
        if self.speaks(line.verb):
            self.send_bytes(bytes(line))

    def speaks(self, verb: str) -> bool:
        """Does the peer know this verb? It may be older than the verb is."""
        return verb not in codec.LATER or codec.LATER[verb] in self.caps

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
        said = read_plain(text) if self.stage is _LIVE and self._roster is None else None
        self.receive(Message.parse(text) if said is None else said)

    def receive(self, line: Message | Plain) -> None:
        """One line of the peer's; what it may not say ends this link and nothing else."""
        if self.stage is _CLOSED:
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
        self.name, self.peer, self.description = name, short_name(name), description
        if not self.is_dialled:
            for line in self._core.admission.greeting(self):
                self.send(line)
        self._secret = None
        self.stage = Stage.SYNCING
        self._core.admission.admitted(self)

    def _ended(self, line: Message) -> None:
        """The peer says why it goes; whoever may read the log is told once for each reason."""
        self.stage, self.why = Stage.CLOSED, " ".join(line.params)[:_LONGEST_REASON] or "error"
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
                self._core.admission.agreed(self, number(version), tuple(words))
                self._core.backfill.begun(self, words[0])
            case "ERROR", _:
                self._ended(line)
            case "PING" | "PONG", _:
                pass
            case _:
                raise Refusal("LINK comes first")

    def _wanted(self, what: str) -> None:
        """Whoever asks twice in one breath is told once: the answer may be long."""
        if what not in self.answered:
            self.answered.add(what)
            if is_channel(what):
                self._core.sharing.wanted(self, what)
            else:
                self._core.presence.wanted(self, what)

    def _managed(self, line: Message) -> None:
        core = self._core
        match line.verb, line.params:
            case "LINK", _:
                raise Garbled("LINK comes once")
            case "LINKSTATE", _:
                core.presence.link_state(self, line)
            case "ROSTER", (name, epoch, version) if is_epoch(epoch):
                self._roster = Roster(short_name(name), name, epoch, number(version))
                self._roster.is_unvouched = UNVOUCHED_TAG in line.tags
            case "ENDROSTER", _:
                roster, self._roster = self._roster, None
                if roster is None:
                    raise Garbled("ENDROSTER without ROSTER")
                core.presence.roster(self, roster)
            case "CHANNEL", _:
                core.presence.channel(self, line)
            case "RESUME", (own, position):
                core.backfill.resumed(self, own, number(position))
            case "EOBACKFILL", (position,):
                core.backfill.caught_up(self, number(position))
            case "ACK", (position, told):
                core.backfill.acknowledged(self, number(position), number(told))
            case "CUSTODY", (id,):
                core.courier.custody(self, id)
            case "WANT", (what,):
                self._wanted(what)
            case "MEMBERS", (_, _):
                core.sharing.joined(self, line)
            case "NPART", (_, _):
                core.sharing.parted(self, line)
            case "GAP", (lost,):
                core.backfill.gap(self, number(lost))
            case "LEAVE", (reason,):
                self.leaving = reason[:_LONGEST_REASON] or "no reason given"
            case "PING", _:
                self.send(Message("PONG", line.params))
            case "ERROR", _:
                self._ended(line)
            case "ROSTER", _:
                raise Garbled("ROSTER of what is no server")
            case "PONG", (_, self.MARK):
                self.echo = True
            case (("PONG" | "EOB"), _):
                pass
            case _:
                self._passed_over(line.verb)

    def warn(self, text: str, *values: object) -> None:
        """Log what is wrong with what the peer says; of a peer that goes on so, only the first of it."""
        if self._warnings < _MOST_WARNINGS:
            self._warnings += 1
            log.warning("%s " + text, self.name, *values)
            if self._warnings == _MOST_WARNINGS:
                log.warning("whatever else %s says of this kind is not logged any more", self.name)

    def _passed_over(self, verb: str) -> None:
        """A newer peer may say more than we know; whoever may read the log is told once for each verb."""
        self.unknown += 1
        if verb not in self._named and len(self._named) < _MOST_NAMED:
            self._named.add(verb)
            log.info("%s says %s, which is unknown here", self.name, verb[:_LONGEST_NAMED])
