"""What to type on the other machine, so that a link which was made here becomes one."""

import shlex
from pathlib import Path

from culture.cli import fingerprint
from culture.config.links import Link
from culture.config.model import Listen, ServerConfig


def text(settings: ServerConfig, link: Link, secret: Path) -> str:
    """The command for the other side, with what is known here."""
    door = _door(settings, link)
    words = ["culture", "mesh", "link", settings.name]
    if link.address is None:
        words.append(_address(door))
    words += ["--secret-file", str(secret)]
    shown = fingerprint.of(door.tls.certificate) if door is not None and door.tls is not None else None
    if shown is not None:
        words += ["--fingerprint", shown]
    if link.trust == "restricted":
        words += ["--trust", link.trust, *(word for channel in link.channels for word in ("--channel", channel))]
    lines = [f"On {link.name}, with the secret there:", f"  {shlex.join(words)}"]
    if shown is None:
        lines.append(
            f"From another machine {link.short_name} is linked by TLS alone, for which {settings.name} needs a "
            "certificate: `culture server cert`."
        )
    return "\n".join(lines)


def rotation(settings: ServerConfig, link: Link, secret: Path | None) -> str:
    """How a change of secrets goes on, on both sides."""
    there = ["culture", "mesh", "rotate", settings.name, "--secret-file", str(secret or "FILE")]
    return "\n".join(
        [
            f"On {link.name}, unless it was done there:",
            f"  {shlex.join(there)}",
            "When both have the new one, forget the old one here and there:",
            f"  culture mesh rotate {link.name} --finish",
            f"  culture mesh rotate {settings.name} --finish",
        ]
    )


def _door(settings: ServerConfig, link: Link) -> Listen | None:
    """Where the other side would come in: by TLS, unless the link is without."""
    plain = [each for each in settings.listen if each.tls is None and not each.websocket]
    encrypted = [each for each in settings.listen if each.tls is not None and not each.websocket]
    doors = plain if link.tls is False else encrypted + plain
    return doors[0] if doors else None


def _address(door: Listen | None) -> str:
    """As far as it is known: a name for this machine that others use is not."""
    if door is None:
        return "HOST:PORT"
    host = door.host if door.is_loopback else "HOST"
    return f"{f'[{host}]' if ':' in host else host}:{door.port or 'PORT'}"
