"""IRCv3 draft/multiline: collects a message of several lines while a client sends its batch."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from culture.config.model import ServerLimits
from culture.protocol.caps import MULTILINE_CONCAT
from culture.protocol.message import Message
from culture.protocol.names import fold
from culture.server.core.encode import wire
from culture.server.core.labeled_response import under_label
from culture.server.core.session import Session
from culture.server.events import Line

_VERBS = ("PRIVMSG", "NOTICE")
_LONGEST_TARGET = 200


@dataclass(slots=True, eq=False)
class MultilineBatch:
    """A multiline message whose lines are still coming in; once it is refused, they are dropped."""

    name: str
    target: str
    tags: Mapping[str, str]
    label: str | None
    touched: float
    verb: str = ""
    lines: list[Line] = field(default_factory=list)
    size: int = 0
    is_refused: bool = False

    @property
    def text(self) -> str:
        """Return the message's lines as one text, joined with or without line ends as marked."""
        first, *rest = self.lines
        return first.text + "".join(line.text if line.concat else f"\n{line.text}" for line in rest)


def offer(limits: ServerLimits) -> str:
    """Return the value of the capability draft/multiline: the limits in bytes and lines."""
    return f"max-bytes={limits.multiline_bytes},max-lines={limits.multiline_lines}"


class MultilineBatches:
    """The multiline message (a batch) that each session is sending.

    A message is accepted or refused as a whole. Of a refusal the client is told by FAIL.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._open: dict[Session, MultilineBatch] = {}

    def open(self, session: Session, batch: MultilineBatch) -> None:
        """Begin a multiline batch of a session; if it has an open one, that is refused (FAIL)."""
        self.spoil(session, "Another batch was opened before this one was closed")
        self._open[session] = batch

    def add(self, session: Session, message: Message, limits: ServerLimits) -> None:
        """Add a message with a ``batch`` tag to the session's open batch.

        Send FAIL if it does not fit into the batch, by tag, verb or ``limits``.
        """
        batch = self._open.get(session)
        if batch is None:
            self._tell(session, None, "MULTILINE_INVALID", text="There is no such batch")
        elif not batch.is_refused:
            batch.touched = session.connection.last_active
            self._add(session, batch, message, limits)

    def _add(self, session: Session, batch: MultilineBatch, message: Message, limits: ServerLimits) -> None:
        concat = MULTILINE_CONCAT in message.tags and bool(batch.lines)
        if message.tags["batch"] != batch.name or message.verb not in _VERBS or len(message.params) != 2:
            self.spoil(session, "A batch holds lines with its name, each PRIVMSG or NOTICE with target and text")
            return
        target, text = message.params
        batch.size += len(text.encode()) + (1 if batch.lines and not concat else 0)
        if fold(target) != fold(batch.target):
            words = (batch.target, target if len(target.encode()) <= _LONGEST_TARGET else "*")
            self._refuse(session, batch, "MULTILINE_INVALID_TARGET", *words, text="A batch has one target")
        elif batch.verb not in ("", message.verb):
            self.spoil(session, "A batch is PRIVMSG or NOTICE, not both")
        elif MULTILINE_CONCAT in message.tags and not text:
            self.spoil(session, "A blank line cannot be joined to the one before it")
        elif len(batch.lines) >= limits.multiline_lines:
            self._refuse_size(session, batch, "MAX_LINES", limits.multiline_lines, "lines")
        elif batch.size > limits.multiline_bytes:
            self._refuse_size(session, batch, "MAX_BYTES", limits.multiline_bytes, "bytes")
        else:
            batch.verb = message.verb
            batch.lines.append(Line(text, concat))

    def close(self, session: Session, name: str) -> MultilineBatch | None:
        """End the session's batch and return it.

        None if there is no batch of this name or it was refused; the client has then been sent FAIL.
        """
        batch = self._open.get(session)
        if batch is None or batch.name != name:
            self.spoil(session, "Another batch was closed")
            self._tell(session, None, "MULTILINE_INVALID", text="There is no such batch")
            return None
        if not batch.is_refused and not any(line.text for line in batch.lines):
            self.spoil(session, "A message needs some text")
        del self._open[session]
        return None if batch.is_refused else batch

    def spoil(self, session: Session, why: str) -> None:
        """Refuse the session's open batch, if any, because a line of it was wrong or is lost.

        ``why``: the text of the FAIL for the client.
        """
        batch = self._open.get(session)
        if batch is not None and not batch.is_refused:
            self._refuse(session, batch, "MULTILINE_INVALID", text=why)

    def expire(self, now: float, timeout: float) -> None:
        """Refuse (FAIL) the open batches to which no line was added for ``timeout`` seconds.

        ``now``: monotonic time in seconds.
        """
        for session, batch in self._open.items():
            if not batch.is_refused and now - batch.touched >= timeout:
                text = f"Nothing came for {timeout:g} seconds"
                self._refuse(session, batch, "TIMEOUT", batch.name, text=text)

    def forget(self, session: Session) -> None:
        """Drop the batch of a session that has ended."""
        self._open.pop(session, None)

    def _refuse_size(self, session: Session, batch: MultilineBatch, code: str, limit: int, unit: str) -> None:
        text = f"A message has at most {limit} {unit} here"
        self._refuse(session, batch, f"MULTILINE_{code}", str(limit), text=text)

    def _refuse(self, session: Session, batch: MultilineBatch, code: str, *words: str, text: str) -> None:
        batch.is_refused = True
        batch.lines.clear()
        self._tell(session, batch.label, code, *words, text=text)

    def _tell(self, session: Session, label: str | None, code: str, *words: str, text: str) -> None:
        line = wire(Message("FAIL", ("BATCH", code, *words, text), self._server))
        if label is None:
            session.send(line)
        else:
            session.push(under_label(line, label))
