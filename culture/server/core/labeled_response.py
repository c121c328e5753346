"""IRCv3 labeled-response: mark the answer to a labelled command with its label."""

from collections.abc import Iterable, Iterator
from itertools import chain, count

from culture.protocol.message import escape

_batches = count(1)


def labelled(lines: Iterable[bytes], label: str, server: str) -> Iterator[bytes]:
    """Yield the answer to a labelled command: an ACK (no lines), one tagged line, or a batch.

    ``server``: the server's name, the source of the added lines.
    """
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
        # Lines of a batch inside of this one have the tag of that batch only.
        yield row if row.startswith(b"@batch=") else tagged(row, f"batch={batch}")
    yield f":{server} BATCH -{batch}\r\n".encode()


def under_label(line: bytes, label: str) -> bytes:
    """Return the line with the ``label`` tag added."""
    return tagged(line, _tag(label))


def tagged(line: bytes, tag: str) -> bytes:
    """Return the line with the encoded tag ``tag`` added, before its other tags."""
    return b"@" + tag.encode() + (b";" + line[1:] if line.startswith(b"@") else b" " + line)


def _tag(label: str) -> str:
    return f"label={escape(label)}"
