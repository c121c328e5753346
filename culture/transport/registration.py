"""Registration without I/O: capabilities, login (SASL) and nick; lines in, lines out."""

import base64
import binascii
from collections.abc import Iterator

from culture.protocol.caps import MULTILINE, lines
from culture.protocol.message import Message
from culture.protocol.names import short_name
from culture.protocol.vocabulary import Cap
from culture.runtime import REAL, Runtime
from culture.transport import sasl
from culture.transport.types import ClientIdentity, Hopeless, WrongServer

WANTED_CAPS = (
    "message-tags",
    "server-time",
    "batch",
    "labeled-response",
    "echo-message",
    "account-tag",
    "account-notify",
    "away-notify",
    "cap-notify",
    "chghost",
    "extended-join",
    "invite-notify",
    "multi-prefix",
    "setname",
    "standard-replies",
    MULTILINE,
    "draft/channel-rename",
    "draft/message-redaction",
    "draft/chathistory",
    "draft/metadata-3",
    "draft/metadata-2",
    Cap.MENTIONS.value,
    Cap.RECEIPTS.value,
)
"""Capabilities to request where the server offers them."""

_REQUEST_BYTES = 400
_MAX_CHALLENGE = 1 << 16
_LOGIN_REFUSED = ("464", "465", "902", "904", "905", "906")
_NICK_IN_USE = ("433", "436", "437")
_ALTERNATIVES = 8


class RegistrationRefused(Exception):
    """The server refused the registration, but another attempt may succeed."""


class Registration:
    """The registration on one connection, without I/O.

    The caller passes every line of the server to ``take`` until ``done`` is set, and sends the lines that it
    yields.
    """

    def __init__(
        self,
        identity: ClientIdentity,
        *,
        private: bool,
        encrypted: bool,
        runtime: Runtime = REAL,
    ) -> None:
        self._identity = identity
        self._runtime = runtime
        self._private = private
        self._certificate = encrypted and identity.certificate is not None
        self._offered: dict[str, str] = {}
        self._requested: set[str] = set()
        self._mechanism: sasl.ClientMechanism | None = None
        self._challenge = ""
        self._prefix = ""
        self._tries = 0
        self.enabled: dict[str, str] = {}
        """Enabled capabilities with their values."""
        self.wanted = identity.nick
        """The nick to have, with the prefix that the server demands."""
        self.nick = identity.nick
        """The nick requested, and after registration the actual one."""
        self.account: str | None = None
        """The account we are logged in to."""
        self.done = False

    @property
    def _logs_in(self) -> bool:
        identity = self._identity
        return (
            self._certificate
            or identity.on_behalf is not None
            or (identity.account is not None and identity.secret is not None)
        )

    def begin(self) -> Iterator[Message]:
        """Yield the first lines to send: CAP LS, a server password if there is one, NICK, USER.

        ``Hopeless`` is raised if others could read the password.
        """
        yield Message("CAP", ("LS", "302"))
        if self._identity.secret is not None and self._identity.account is None:
            if not self._private:
                raise Hopeless("the password is not sent where others could read it: use TLS")
            yield Message("PASS", (self._identity.secret,))
        yield Message("NICK", (self.nick,))
        yield Message("USER", (_user_name(self._identity.nick), "0", "*", self._identity.realname or self.nick))

    def take(self, line: Message) -> Iterator[Message]:
        """Process a line of the server; yield the lines to send in answer.

        Raises ``RegistrationRefused`` if another attempt may succeed, else ``Hopeless`` or ``WrongServer``.
        """
        verb, params = line.verb, line.params
        match verb:
            case "PING":
                yield Message("PONG", params[-1:])
            case "CAP":
                yield from self._cap(params)
            case "AUTHENTICATE":
                yield from self._authenticate(params[0] if params else "+")
            case "900":
                self.account = params[2] if len(params) > 2 else None
            case "903" | "907":
                yield Message("CAP", ("END",))
            case "908" | "410":
                pass
            case "421" | "451" if "CAP" in params:
                if self._logs_in:
                    raise WrongServer("this server has no logins")
            case "432":
                yield self._with_prefix(line)
            case _ if verb in _NICK_IN_USE:
                yield self._alternative()
            case _ if verb in _LOGIN_REFUSED:
                raise Hopeless(f"the server does not let us in: {params[-1]}")
            case "ERROR":
                reason = params[-1] if params else "the server closed the connection"
                # Not every server has a numeric for a wrong password.
                raise Hopeless(reason) if "password" in reason.lower() else RegistrationRefused(reason)
            case "001":
                if self._logs_in and self.account is None:
                    raise WrongServer("this server has no logins")
                self.nick = params[0]
                self.done = True

    def _cap(self, params: tuple[str, ...]) -> Iterator[Message]:
        if len(params) < 3:
            return
        words = params[-1].split()
        match params[1].upper():
            case "LS":
                self._offered.update(_pair(word) for word in words)
                if params[2] != "*" or len(params) == 3:
                    yield from self._request_caps()
            case "ACK":
                self.enabled.update((word, self._offered.get(word, "")) for word in words)
                self._requested.difference_update(words)
                yield from self._log_in_or_end()
            case "NAK":
                self._requested.difference_update(words)
                yield from self._log_in_or_end()

    def _request_caps(self) -> Iterator[Message]:
        wanted = [cap for cap in WANTED_CAPS if cap in self._offered]
        if "draft/metadata-3" in wanted and "draft/metadata-2" in wanted:
            wanted.remove("draft/metadata-2")
        if self._logs_in:
            if "sasl" not in self._offered:
                raise WrongServer("this server has no logins (SASL)")
            wanted.append("sasl")
        self._requested = set(wanted)
        for words in lines(wanted, _REQUEST_BYTES):
            if words:
                yield Message("CAP", ("REQ", words))
        if not wanted:
            yield from self._log_in_or_end()

    def _log_in_or_end(self) -> Iterator[Message]:
        if self._requested:
            return
        if not self._logs_in:
            yield Message("CAP", ("END",))
        elif "sasl" not in self.enabled:
            raise WrongServer("this server has no logins (SASL)")
        elif self._mechanism is None:
            offered = [name for name in self._offered.get("sasl", "").split(",") if name]
            self._mechanism = sasl.choose(
                self._identity, offered, self._private, self._certificate, runtime=self._runtime
            )
            yield Message("AUTHENTICATE", (self._mechanism.name,))

    def _authenticate(self, piece: str) -> Iterator[Message]:
        if self._mechanism is None:
            return
        self._challenge += "" if piece == "+" else piece
        if len(piece) == sasl.PIECE and len(self._challenge) < _MAX_CHALLENGE:
            return
        try:
            challenge = base64.b64decode(self._challenge, validate=True)
        except binascii.Error as error:
            raise RegistrationRefused("the server's challenge makes no sense") from error
        self._challenge = ""
        for part in sasl.pieces(self._mechanism.answer(challenge)):
            yield Message("AUTHENTICATE", (part,))

    def _with_prefix(self, line: Message) -> Message:
        """Return NICK with our nick after the server's name (``name-nick``), as that server demands.

        ``line``: the server's refusal of the nick, whose source is the server's name. ``Hopeless`` is raised if the
        nick already had this prefix.
        """
        prefix = f"{short_name(line.source)}-"
        if self._prefix or not line.source or self.nick.startswith(prefix):
            raise Hopeless(f"{self.nick} is not a nick here: {line.params[-1]}")
        self._prefix = prefix
        self.wanted = self.nick = prefix + self._identity.nick
        return Message("NICK", (self.nick,))

    def _alternative(self) -> Message:
        """Return NICK with the next alternative nick, as the present one is in use.

        ``RegistrationRefused`` is raised when all alternatives are used up.
        """
        self._tries += 1
        if self._tries > _ALTERNATIVES:
            raise RegistrationRefused(f"{self.wanted} and all like it are taken")
        self.nick = alternative_nick(self.wanted, self._tries)
        return Message("NICK", (self.nick,))


def _pair(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name, value


def alternative_nick(nick: str, number: int) -> str:
    """Return alternative ``number`` (from 1) to a nick in use: ``nick_``, ``nick_2``, ..."""
    return f"{nick}_" if number == 1 else f"{nick[:28]}_{number}"


def possible_nicks(nick: str) -> list[str]:
    """Return the nick and all alternatives that a client takes if the nick is in use."""
    return [nick, *(alternative_nick(nick, number) for number in range(1, _ALTERNATIVES + 1))]


def _user_name(nick: str) -> str:
    """Return the user name to send with USER: the part of the nick after its last hyphen.

    It has at most 10 ASCII letters and digits; without any it is ``culture``.
    """
    name = nick.rpartition("-")[2] if "-" in nick else nick
    return "".join(each for each in name if each.isascii() and each.isalnum())[:10] or "culture"
