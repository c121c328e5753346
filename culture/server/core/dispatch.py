"""The dispatcher: turns a client's bytes into messages and runs the handler of each verb."""

import asyncio
import logging
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain

from culture.config.model import Rate
from culture.lib.ratelimit import TokenBucket
from culture.protocol.message import Message, ProtocolError
from culture.protocol.numerics import Numeric
from culture.protocol.stream import LineBuffer, Oversize, oversize
from culture.server.commands import Command, Later, Unanswered
from culture.server.context import Context
from culture.server.core.encode import wire
from culture.server.core.labeled_response import labelled, under_label
from culture.server.core.state import User
from culture.server.errors import Failed, Refused

log = logging.getLogger(__name__)

_SHORT = 510  # bytes: a line up to this length needs no check of its limits
_HTTP = (b"GET", b"POST", b"PUT", b"HEAD", b"DELETE", b"CONNECT", b"OPTIONS", b"PATCH", b"TRACE", b"HOST:")
_HTTP_LIKE = re.compile(rb"\S+[ \t]+\S+[ \t]+(HTTP|RTSP|SIP|ICAP)/[0-9]", re.IGNORECASE)
_MAIL = (b"EHLO", b"HELO", b"LHLO")
_SSH = b"SSH-"
_TLS = b"\x16\x03"
_MOST_UNKNOWN = 3  # unknown commands before registration; clients try one or two of other servers
_REGISTERING = Rate(burst=30, rate=2.0)  # negotiating capabilities and a login take a dozen lines
_LINE_OF_A_BATCH = 0.1  # cost of a line in a batch, in commands: its hundred lines are one message
_LOST = "\ufffd"  # the character that replaces bytes which are not UTF-8

Then = Callable[[], Later | None]


class Dispatcher:
    """Reads one session's lines and runs them in order, one at a time.

    A command runs to its end within one turn of the event loop, unless its handler returns a ``Later``. Then, while a
    long answer is produced, and while flood control slows the client down, further lines wait here.
    """

    __slots__ = (
        "_answered",
        "_bucket",
        "_buffer",
        "_commands",
        "_context",
        "_held",
        "_monotonic",
        "_session",
        "_unknown",
    )

    def __init__(self, context: Context, commands: Mapping[str, Command]) -> None:
        self._context = context
        self._session = context.session
        self._monotonic = context.parts.runtime.monotonic
        self._commands = commands
        self._buffer = LineBuffer()
        self._bucket = TokenBucket(self._session.opened)
        self._held: deque[bytes] | None = None
        self._unknown = 0  # number of unknown commands before registration
        self._answered: list[bytes] = []  # answer so far to a labelled command that returned Later

    def receive(self, data: bytes) -> None:
        """Take bytes that the connection has read, and run the commands of the completed lines."""
        try:
            lines = self._buffer.feed(data)
        except ProtocolError:
            self._session.close("Input line too long")
            return
        session = self._session
        if self._held is not None:
            self._held.extend(lines)
            return
        granted = self._bucket.take(len(lines), self._allowed(), session.connection.last_active)
        for position, raw in enumerate(lines):
            if position == granted:
                self._held = deque(lines[position:])
                self._slow_down()
                return
            self._take(raw)
            if session.ended:
                self._hand_on(lines[position + 1 :])
                return
            if session.is_busy:
                self._held = deque(lines[position + 1 :])
                session.idle = self._resume
                return

    def _allowed(self) -> Rate:
        """Return this client's rate limit, which depends on its address, registration and class."""
        flood, user = self._context.parts.config.flood, self._session.user
        if self._session.is_local:
            return flood.loopback
        if user is None:
            return _REGISTERING if flood.clients.rate else flood.clients
        return flood.agents if user.account is not None and self._is_agent(user) else flood.clients

    def _is_agent(self, user: User) -> bool:
        return self._context.network.is_agent(user)

    def _slow_down(self) -> None:
        """Stop reading until flood control allows the next command; TCP then holds up the client."""
        self._session.wait()
        asyncio.get_running_loop().call_later(self._bucket.wait(self._allowed(), self._monotonic()), self._speed_up)

    def _speed_up(self) -> None:
        if not self._session.ended:
            with self._context.parts.turn():
                self._session.go_on()
                self._resume()

    def allowance(self) -> int:
        """Return how many bytes may wait to be sent to the client: more for agents and long answers."""
        limits, user = self._context.config.limits, self._session.user
        pushed = limits.agent_send_queue if user is not None and self._is_agent(user) else limits.send_queue
        return pushed + limits.pull_queue if self._session.is_pulling else pushed

    def lost(self, reason: str) -> None:
        """End the session because its connection was lost."""
        self._session.lost(reason)

    def _resume(self) -> None:
        lines, self._held = self._held, None
        while lines and not self._session.ended:
            if not self._bucket.take(1, self._allowed(), self._monotonic()):
                self._held = lines
                self._slow_down()
                return
            self._take(lines.popleft())
            if self._session.is_busy:
                self._held = lines
                return
        self._hand_on(lines or ())

    def _hand_on(self, lines: Iterable[bytes]) -> None:
        """Pass the remaining lines to the connection's new owner, if it turned into a server's link."""
        owner = self._session.connection.owner
        if owner is not None and owner is not self:
            owner.receive(self._buffer.given_back(lines))

    def _take(self, raw: bytes) -> None:
        if self._session.user is None and (protocol := self._other_protocol(raw)) is not None:
            self._session.close(protocol)
            return
        if len(raw) > _SHORT and (excess := oversize(raw)) is not None:
            self._refuse_length(excess)
            self._spoil_batch(raw)
            return
        try:
            line = raw.decode()
            message = Message.parse(line)
        except UnicodeDecodeError:
            self._refuse_encoding(raw)
            return
        except ProtocolError:
            return
        if "\0" in line:
            self._spoil_batch(raw)
            return
        if message.tags:
            self._take_tagged(message)
        else:
            self._run(message)

    def _take_tagged(self, message: Message) -> None:
        """Run a message that has tags.

        A line of a batch is collected; a labelled command is answered under its label.
        """
        then = None
        if "batch" in message.tags and self._session.user is not None:
            limits = self._context.config.limits
            then = partial(self._context.parts.batches.add, self._session, message, limits)
            self._bucket.give_back(1 - _LINE_OF_A_BATCH)
        if self._is_labelled(message):
            self._run_labelled(message, then)
        else:
            self._run(message, then)

    def _is_labelled(self, message: Message) -> bool:
        return "label" in message.tags and "labeled-response" in self._session.caps.enabled

    def _run(self, message: Message, then: Then | None = None) -> bool:
        """Run the message's command, or ``then`` in its place; a refusal is sent to the client.

        Returns False if the command is answered only after a later line of the client (Unanswered). An error of the
        handler ends the session.
        """
        context = self._context
        try:
            command = self._commands.get(message.verb)
            if command is None:
                self._refuse_verb(message)
            elif self._session.user is None and not command.early:
                raise Refused(Numeric.ERR_NOTREGISTERED)
            elif len(message.params) < command.params:
                raise Refused(Numeric.ERR_NEEDMOREPARAMS, message.verb)
            else:
                later = command.handler(context, message) if then is None else then()
                if later is not None:
                    if isinstance(later, Unanswered):
                        return False
                    self._wait_for(later, message)
        except Refused as refused:
            context.refuse(refused)
        except Failed as failed:
            context.fail(failed)
        except Exception:
            log.exception("%s by %s failed", message.verb, context.nick)
            self._session.close("Internal error")
        return True

    def _run_labelled(self, message: Message, then: Then | None = None) -> None:
        session = self._session
        captured = session.capture()
        is_answered = self._run(message, then)
        if session.ended:
            return
        session.release()
        self._answered += captured
        if session.waiting or not (is_answered or self._answered):
            return
        answer = chain(self._answered, session.take_rows())
        self._answered = []
        session.pull(labelled(answer, message.tags["label"], self._context.router.name))

    def _wait_for(self, later: Later, message: Message) -> None:
        self._session.wait()
        self._context.parts.tasks.start(self._finish(later, message))

    async def _finish(self, later: Later, message: Message) -> None:
        """Wait for the work of a Later and run its ``then``; go on with the lines sent meanwhile.

        ``message``: the command that returned the Later.
        """
        try:
            result = await later.work
        except Exception:
            log.exception("%s by %s failed", message.verb, self._context.nick)
            with self._context.parts.turn():
                self._session.close("Internal error")
            return
        if self._session.ended:
            return
        with self._context.parts.turn():
            self._session.go_on()
            run = self._run_labelled if self._is_labelled(message) else self._run
            run(message, partial(later.then, result))
            if not self._session.is_busy:
                self._resume()

    def _other_protocol(self, raw: bytes) -> str | None:
        """Return a text for the client if the line is of another protocol (HTTP, TLS, …), else None.

        The connection is to be closed with this text.
        """
        return None if _verb(raw).decode("latin-1") in self._commands else _not_irc(raw)

    def _refuse_verb(self, message: Message) -> None:
        if self._session.user is None:
            self._unknown += 1
            if self._unknown >= _MOST_UNKNOWN:
                self._context.reply(Numeric.ERR_UNKNOWNCOMMAND, message.verb)
                self._session.close("This is an IRC server, and knows none of these commands")
                return
        raise Refused(Numeric.ERR_UNKNOWNCOMMAND, message.verb)

    def _refuse_length(self, excess: Oversize) -> None:
        what = "tags" if excess is Oversize.TAGS else "line"
        self._context.reply(Numeric.ERR_INPUTTOOLONG, text=f"Input {what} was too long")

    def _refuse_encoding(self, raw: bytes) -> None:
        try:
            message = Message.parse(raw.decode(errors="replace"))
        except ProtocolError:
            return
        verb = message.verb if message.verb in self._commands else "*"
        fail = Message("FAIL", (verb, "INVALID_UTF8", "Message rejected, only UTF-8 is allowed here"))
        line = wire(fail._replace(source=self._context.router.name))
        label = message.tags.get("label", _LOST)
        is_labelled = self._is_labelled(message) and _LOST not in label
        self._session.send(under_label(line, label) if is_labelled else line)
        self._spoil_batch(raw)

    def _spoil_batch(self, raw: bytes) -> None:
        """Refuse the open multiline batch if the refused line ``raw`` may belong to it: it has tags."""
        if raw.lstrip(b" ").startswith(b"@"):
            self._context.parts.batches.spoil(self._session, "A line of it was refused")


def _not_irc(raw: bytes) -> str | None:
    """Return a text for the client if the line is of another protocol; None if it may be IRC.

    A browser sends what a web page asks for to any port. Such a request is refused at its first line, because a line
    further down could be an IRC command, run as the page's reader, who needs no login on their own machine.
    """
    if raw.startswith(_TLS):
        return "This port has no TLS"
    verb = _verb(raw)
    if verb in _HTTP or _HTTP_LIKE.match(raw.lstrip(b" ")):
        return "This is an IRC server, not HTTP"
    if verb in _MAIL:
        return "This is an IRC server, and takes no mail"
    if raw.startswith(_SSH):
        return "This is an IRC server, not SSH"
    return None


def _verb(raw: bytes) -> bytes:
    """Return the first word of a line in capitals, at most 32 bytes."""
    return raw.lstrip(b" ")[:32].partition(b" ")[0].rstrip(b"\r").upper()
