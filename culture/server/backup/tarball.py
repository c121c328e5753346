"""The format of a backup: a gzipped tar file that any tar can list, read without trust."""

import gzip
import hashlib
import io
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from culture.lib.files import PRIVATE_FILE
from culture.server.backup import manifest as manifests
from culture.server.backup.manifest import BackupFile, BadBackup, Manifest

Count = Callable[[int], None]
"""Called with the number of further bytes that are done."""

_LEVEL = 6
_BLOCK = 512
_CHUNK = 1 << 20
_LONGEST_MANIFEST = 1 << 24
_LONGEST_NAME = 4096
_PADDING = 1 << 16  # tar fills its last record with zeros
_FILE, _OLD_FILE, _LONG_NAME = b"0", b"\0", b"L"


def pack(out: IO[bytes], manifest: Manifest, folder: Path, at: float, count: Count) -> None:
    """Write a manifest, and the files in ``folder`` that it names, to ``out`` as gzipped tar.

    ``at``: time of the files (seconds since 1970). ``count`` is called with the number of bytes read.
    """
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.GNU_FORMAT, compresslevel=_LEVEL) as tar:
        data = manifests.dump(manifest)
        tar.addfile(_header(manifests.NAME, len(data), at), io.BytesIO(data))
        for file in manifest.files:
            with (folder / file.name).open("rb") as source:
                tar.addfile(_header(file.name, file.size, at), _Counted(source, count))


def _header(name: str, size: int, at: float) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.size, header.mtime, header.mode = size, int(at), PRIVATE_FILE
    return header


class _Counted(io.RawIOBase):
    """A file that reports to ``count`` how many bytes were read from it."""

    def __init__(self, source: IO[bytes], count: Count) -> None:
        self._source = source
        self._count = count

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self._count(len(data))
        return data


class TarMember(NamedTuple):
    """A file in a tar file; use up its ``chunks`` before asking for the next member."""

    name: str
    size: int
    chunks: Iterator[bytes]


def opened(source: IO[bytes]) -> tuple[Manifest, Iterator[TarMember]]:
    """Return a backup's manifest, and an iterator over the files that it names, in order.

    Raises BadBackup, also while iterating, if the archive has other or damaged files, or is no backup.
    """
    members = _members(source)
    first = next(members, None)
    if first is None or first.name != manifests.NAME or first.size > _LONGEST_MANIFEST:
        raise BadBackup("it is not a backup of culture")
    manifest = manifests.parse(b"".join(first.chunks))
    return manifest, _named(manifest, members)


def peeked(source: IO[bytes]) -> tuple[Manifest, bytes | None]:
    """Return a backup's manifest, and the contents of its configuration file.

    The latter are None if the backup does not begin with that file. ``source``: the backup's contents.
    """
    manifest, members = opened(source)
    first = manifest.files[0] if manifest.files else None
    if first is None or first.name != manifests.CONFIG or first.size > _LONGEST_MANIFEST:
        return manifest, None
    return manifest, b"".join(next(members).chunks)


def _named(manifest: Manifest, members: Iterator[TarMember]) -> Iterator[TarMember]:
    for file in manifest.files:
        member = next(members, None)
        if member is None or (member.name, member.size) != (file.name, file.size):
            raise BadBackup(f"{file.name!r} is missing or not what its {manifests.NAME} says")
        yield member._replace(chunks=_whole(file, member.chunks))
    if next(members, None) is not None:
        raise BadBackup(f"there is more in it than its {manifests.NAME} says")


def _whole(file: BackupFile, chunks: Iterator[bytes]) -> Iterator[bytes]:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
        yield chunk
    if digest.hexdigest() != file.sha256:
        raise BadBackup(f"{file.name!r} is damaged")


def _members(source: IO[bytes]) -> Iterator[TarMember]:
    """Yield the plain files of a gzipped tar file.

    Raises BadBackup for links, folders and the like.
    """
    with gzip.open(source) as stream:
        while (header := _header_of(stream)) is not None:
            name, size, kind = header
            long_name = ""
            if kind == _LONG_NAME:
                long_name = _long_name(stream, size)
                header = _header_of(stream)
                if header is None:
                    raise BadBackup("it ends in the middle")
                name, size, kind = header
            if kind not in (_FILE, _OLD_FILE):
                raise BadBackup(f"{long_name or name!r} is not a plain file")
            yield TarMember(long_name or name, size, _chunks(stream, size))
        if _read(stream, _PADDING).strip(b"\0") or _read(stream, 1):
            raise BadBackup("there is something behind its end")


def _header_of(stream: gzip.GzipFile) -> tuple[str, int, bytes] | None:
    """Return name, size in bytes and kind from the next tar header.

    None at the end of the archive.
    """
    block = _exactly(stream, _BLOCK)
    if not block.strip(b"\0"):
        return None
    try:
        checksum = int(block[148:156].strip(b"\0 "), 8)
        size = int(block[124:136].strip(b"\0 "), 8) if block[124] < 0x80 else int.from_bytes(block[125:136], "big")
    except ValueError:
        raise BadBackup("it is not a tar file") from None
    if checksum != sum(block[:148]) + 8 * ord(" ") + sum(block[156:]):
        raise BadBackup("it is damaged")
    return block[:100].rstrip(b"\0").decode("utf-8", "surrogateescape"), size, block[156:157]


def _long_name(stream: gzip.GzipFile, size: int) -> str:
    if size > _LONGEST_NAME:
        raise BadBackup("a name in it is too long")
    return b"".join(_chunks(stream, size)).rstrip(b"\0").decode("utf-8", "surrogateescape")


def _chunks(stream: gzip.GzipFile, size: int) -> Iterator[bytes]:
    left = size
    while left:
        chunk = _exactly(stream, min(left, _CHUNK))
        left -= len(chunk)
        yield chunk
    _exactly(stream, -size % _BLOCK)


def _exactly(stream: gzip.GzipFile, size: int) -> bytes:
    data = _read(stream, size)
    if len(data) < size:
        raise BadBackup("it ends in the middle")
    return data


def _read(stream: gzip.GzipFile, size: int) -> bytes:
    try:
        return stream.read(size)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadBackup(f"it is damaged or no gzip file: {error}") from error
