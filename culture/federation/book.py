"""The links that were made, changed or ended on the command line, beside those of culture.yaml."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from culture.config.links import LinkConfig, check_links
from culture.config.model import ServerConfig
from culture.config.values import Misfit
from culture.lib.files import read_private, replace_file, write_lock
from culture.runtime import REAL, Runtime

_LOOKED_LIKE = {"links", "unlinked"}


class UnreadableBook(Exception):
    """The file is not what was written there."""


class Entries(NamedTuple):
    """Links by the first labels of their names, and the names of those that shall not be."""

    links: dict[str, LinkConfig]
    unlinked: frozenset[str]


NOTHING = Entries({}, frozenset())


def path_of(config: ServerConfig) -> Path:
    """Where it is."""
    return config.data_dir / "federation" / "links.json"


def parsed(path: Path, data: bytes) -> Entries:
    """What a file with these contents says."""
    try:
        said = json.loads(data)
        if not isinstance(said, dict) or not said.keys() <= _LOOKED_LIKE:
            raise ValueError("unknown entries")
        links = [LinkConfig.model_validate_json(json.dumps(each)) for each in said.get("links", ())]
        return Entries({link.short_name: link for link in links}, frozenset(map(str, said.get("unlinked", ()))))
    except (ValueError, TypeError, ValidationError, Misfit) as error:
        # What pydantic quotes may be a secret.
        raise UnreadableBook(f"{path}: {type(error).__name__}") from None


class Book:
    """A file that the command line writes and the server looks at."""

    def __init__(self, path: Path, runtime: Runtime = REAL) -> None:
        self.path = path
        self._runtime = runtime

    def read(self) -> Entries:
        """What is written there."""
        found = read_private(self.path)
        return NOTHING if found is None else parsed(self.path, found[0])

    def change(self, change: Callable[[Entries], Entries]) -> Entries:
        """Write what ``change`` makes of it; whoever is interrupted leaves one or the other."""
        with write_lock(self.path, runtime=self._runtime):
            entries = change(self.read())
            said = {
                "links": [link.model_dump(mode="json", exclude_none=True) for link in entries.links.values()],
                "unlinked": sorted(entries.unlinked),
            }
            replace_file(self.path, json.dumps(said, indent=1).encode(), runtime=self._runtime)
        return entries


def merged(configured: Iterable[LinkConfig], entries: Entries) -> dict[str, LinkConfig]:
    """The links there shall be: the command line has the last word."""
    links = {link.short_name: link for link in configured} | entries.links
    return {name: link for name, link in links.items() if name not in entries.unlinked}


def check(config: ServerConfig, links: Iterable[LinkConfig]) -> None:
    """Refuse (Misfit) links that cannot be, or not safely, on this server."""
    listeners = {(each.host, each.port) for each in config.listen}
    check_links(tuple(links), config.short_name, config.trusted_network, listeners)
