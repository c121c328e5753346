"""How the links of a server are, as it says itself, for people to read."""

import json
import time
from typing import Any

from culture.cli import pidfile
from culture.config.links import Link
from culture.config.model import ServerConfig
from culture.federation import status


def figures(settings: ServerConfig) -> list[dict[str, Any]]:
    """What the running server wrote; nothing where none runs."""
    try:
        said = json.loads(status.path_of(settings).read_bytes())
    except (OSError, ValueError):
        return []
    note = pidfile.running(settings.name)
    return list(said["links"]) if note is not None and note.pid == said.get("pid") else []


def at_rest(link: Link) -> dict[str, Any]:
    """A link of a server that does not run."""
    return {"name": link.name, "address": link.address, "trust": link.trust, "state": "not running"}


def described(row: dict[str, Any]) -> str:
    """``thor  linked for 3h, full; 0 behind, acknowledged 4711``."""
    facts = [row["state"]]
    if row.get("since"):
        facts[0] += f" for {_ago(time.time() - row['since'])}"
    facts.append(row["trust"])
    if row.get("address"):
        facts.append(f"at {row['address']}")
    for key, text in (
        ("behind", "{} messages behind"),
        ("queued", "{} bytes on their way"),
        ("private", "{} private messages wait"),
    ):
        if row.get(key):
            facts.append(text.format(row[key]))
    if row.get("lag"):
        facts.append(f"{_ago(row['lag'])} late")
    if row.get("acknowledged"):
        facts.append(f"acknowledged up to {row['acknowledged']}")
    if row.get("secret") == "old":
        facts.append("by its old secret")
    if row.get("problem"):
        facts.append(row["problem"])
    return f"{row['name']}  {', '.join(facts)}"


def _ago(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"
