"""The manifest: the list of files that a backup begins with; nothing else is unpacked."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from culture.server.shapes import Json, UnreadableJson, items, mapping, number, text

FORMAT = 1
NAME = "manifest.json"
DATA, ACCOUNTS, CONFIG, TLS = "data", "accounts.json", "culture.yaml", "tls"
_LONGEST = 1024
_PART = re.compile(r"[^/\x00-\x1f\x7f]{1,255}")
_DIGEST = re.compile("[0-9a-f]{64}")


class BadBackup(Exception):
    """The file is not a backup of ours, is damaged, or is not to be trusted."""


class BackupFile(NamedTuple):
    """One file of a backup; ``schema`` is set for databases."""

    name: str
    size: int
    sha256: str
    schema: int | None = None


class Manifest(NamedTuple):
    """The manifest of a backup: server, time, program version, and the files in their order."""

    server: str
    time: str
    program: str
    files: tuple[BackupFile, ...]
    history: str = "sqlite"
    """The store of the history; with ``sqlite`` it is one of the files."""

    @property
    def size(self) -> int:
        """Return the total size in bytes of the files in the backup, unpacked."""
        return sum(file.size for file in self.files)


def dump(manifest: Manifest) -> bytes:
    """Return the manifest as JSON."""
    files = [{key: value for key, value in file._asdict().items() if value is not None} for file in manifest.files]
    return json.dumps({"format": FORMAT, **manifest._asdict(), "files": files}, indent=1).encode() + b"\n"


def parse(data: bytes) -> Manifest:
    """Parse a manifest; raises BadBackup if it is damaged or its format is unknown (newer)."""
    try:
        document = mapping(json.loads(data))
        form = int(number(document["format"]))
        if form > FORMAT:
            raise BadBackup(f"it has format {form}, and this program knows {FORMAT}: use the newer version of culture")
        files = tuple(_file(mapping(item)) for item in items(document["files"]))
        server, time, program, history = (text(document[key]) for key in ("server", "time", "program", "history"))
    except (ValueError, KeyError, TypeError, RecursionError, UnreadableJson) as error:
        raise BadBackup(f"its {NAME} cannot be read") from error
    _check_names([file.name for file in files])
    return Manifest(server, time, program, files, history)


def _file(item: Json) -> BackupFile:
    name, size, digest, schema = text(item["name"]), item["size"], text(item["sha256"]), item.get("schema")
    if not isinstance(size, int) or size < 0 or not (schema is None or isinstance(schema, int)):
        raise UnreadableJson("a size that is none")
    if not _DIGEST.fullmatch(digest):
        raise UnreadableJson("a digest that is none")
    return BackupFile(name, size, digest, schema)


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if not is_known(name):
            raise BadBackup(f"{name!r} does not belong into a backup")
    if len(set(names)) != len(names):
        raise BadBackup("a file is there twice")
    folders = {name[:at] for name in names for at, letter in enumerate(name) if letter == "/"}
    if folders & set(names):
        raise BadBackup("a file is a folder as well")


def is_known(name: str) -> bool:
    """Return whether a backup may have a file of this name.

    Names of other files are refused, above all those that lead out of the folder where a backup is unpacked.
    """
    parts = name.split("/")
    if len(name) > _LONGEST or any(part in (".", "..") or not _PART.fullmatch(part) for part in parts):
        return False
    return name in (ACCOUNTS, CONFIG) or (parts[0] == DATA and len(parts) > 1) or (parts[0] == TLS and len(parts) == 2)


def schemas(manifest: Manifest) -> Mapping[str, int]:
    """Return the schema number of each database of the backup, by its path in the data folder."""
    return {
        file.name.removeprefix(f"{DATA}/"): file.schema
        for file in manifest.files
        if file.schema is not None and file.name.startswith(f"{DATA}/")
    }
