"""The list of what is in a backup: it comes first in the file, and nothing that it does not name is taken out."""

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
    """The file is no backup of ours, is damaged, or is not to be trusted."""


class BackupFile(NamedTuple):
    """One file of a backup; ``schema`` is that of a database."""

    name: str
    size: int
    sha256: str
    schema: int | None = None


class Manifest(NamedTuple):
    """Whose backup it is, of when, and the files in the order in which they come."""

    server: str
    time: str
    program: str
    files: tuple[BackupFile, ...]
    history: str = "sqlite"
    """What keeps the history: with ``sqlite`` it is one of the files."""

    @property
    def size(self) -> int:
        """How many bytes the files have together."""
        return sum(file.size for file in self.files)


def dump(manifest: Manifest) -> bytes:
    """The manifest as it is written."""
    files = [{key: value for key, value in file._asdict().items() if value is not None} for file in manifest.files]
    return json.dumps({"format": FORMAT, **manifest._asdict(), "files": files}, indent=1).encode() + b"\n"


def parse(data: bytes) -> Manifest:
    """The manifest that was written; BadBackup for whatever is not one."""
    try:
        said = mapping(json.loads(data))
        form = int(number(said["format"]))
        if form > FORMAT:
            raise BadBackup(f"it has format {form}, and this program knows {FORMAT}: use the newer version of culture")
        files = tuple(_file(mapping(item)) for item in items(said["files"]))
        server, time, program, history = (text(said[key]) for key in ("server", "time", "program", "history"))
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
    """May a file of a backup be called so? No name leads out of the folder it is unpacked in."""
    parts = name.split("/")
    if len(name) > _LONGEST or any(part in (".", "..") or not _PART.fullmatch(part) for part in parts):
        return False
    return name in (ACCOUNTS, CONFIG) or (parts[0] == DATA and len(parts) > 1) or (parts[0] == TLS and len(parts) == 2)


def schemas(manifest: Manifest) -> Mapping[str, int]:
    """The schema of each database, by its path in the data folder."""
    return {
        file.name.removeprefix(f"{DATA}/"): file.schema
        for file in manifest.files
        if file.schema is not None and file.name.startswith(f"{DATA}/")
    }
