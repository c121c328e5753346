"""Answers under the label of their question (IRCv3 labeled-response)."""

from collections.abc import Iterable, Iterator
from itertools import chain, count

from culture.protocol.message import escape

_batches = count(1)


def labelled(lines: Iterable[bytes], label: str, server: str) -> Iterator[bytes]:
    """An answer under its label: an ACK when it is empty, one tagged line, or a batch."""
    rows = iter(lines)
    first = next(rows, None)
    if first is None:
        yield f"@{_tag(label)} :{server} ACK\r\n".encode()
        return
    second = next(rows, None)
    if second is None:
        yield under_label(first, label)
        return
    batch = f"l{next(_batches)}"
    yield f"@{_tag(label)} :{server} BATCH +{batch} labeled-response\r\n".encode()
    for row in chain((first, second), rows):
        # What is in a batch inside of this one belongs to that alone.
        yield row if row.startswith(b"@batch=") else tagged(row, f"batch={batch}")
    yield f":{server} BATCH -{batch}\r\n".encode()


def under_label(line: bytes, label: str) -> bytes:
    """The line with its label."""
    return tagged(line, _tag(label))


def tagged(line: bytes, tag: str) -> bytes:
    """The line with one more tag; of a message of several lines it is the first that gets it."""
    return b"@" + tag.encode() + (b";" + line[1:] if line.startswith(b"@") else b" " + line)


def _tag(label: str) -> str:
    return f"label={escape(label)}"
