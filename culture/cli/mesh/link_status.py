"""How the links of a server are, as it says itself, for people to read."""

import json
import time
from collections.abc import Iterable
from typing import Any

from culture.cli import output
from culture.cli.server import pid_file
from culture.config.links import LinkConfig
from culture.config.model import ServerConfig
from culture.federation import status

_STATES = {"waiting": "waiting for it to dial", "not running": "not linked, since this server does not run"}


def figures(settings: ServerConfig) -> list[dict[str, Any]]:
    """What the running server wrote; nothing where none runs."""
    try:
        said = json.loads(status.path_of(settings).read_bytes())
    except (OSError, ValueError):
        return []
    note = pid_file.running(settings.name)
    return list(said["links"]) if note is not None and note.pid == said.get("pid") else []


def at_rest(link: LinkConfig) -> dict[str, Any]:
    """A link of a server that does not run."""
    row = {"name": link.name, "address": link.address, "trust": link.trust, "state": "not running"}
    return {**row, "channels": list(link.channels)}


def intended(link: LinkConfig) -> str:
    """What a link shall be: ``thor is dialled at 10.0.0.2:6697, trust full``."""
    how = f"is dialled at {link.address}" if link.address else "is let in when it dials"
    return f"{link.name} {how}, {_trust(link.trust, link.channels)}"


def described(row: dict[str, Any]) -> str:
    """``thor  linked for 3h, at 10.0.0.2:6697, trust full, has all our messages``."""
    facts = [_STATES.get(row["state"], row["state"])]
    if row.get("since"):
        facts[0] += f" for {_ago(time.time() - row['since'])}"
    if row.get("address"):
        facts.append(f"at {row['address']}")
    facts.append(_trust(row["trust"], row.get("channels", ())))
    for key, text in (
        ("behind", "{} messages behind"),
        ("queued", "{} bytes on their way"),
        ("private", "{} private messages wait"),
    ):
        if row.get(key):
            facts.append(text.format(row[key]))
    if row.get("lag"):
        facts.append(f"{_ago(row['lag'])} late")
    if row.get("acknowledged") and not row.get("behind"):
        facts.append("has all our messages")
    if row.get("secret") == "old":
        facts.append("by its old secret")
    problem = f"; {row['problem']}" if row.get("problem") else ""
    return output.shown(f"{row['name']}  {', '.join(facts)}{problem}")


def _trust(trust: str, channels: Iterable[str]) -> str:
    named = ", ".join(channels)
    return f"trust {trust} to {named}" if named else f"trust {trust}"


def _ago(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"
