"""The links to other servers: their secrets, their certificates, and why one is not there."""

from collections import defaultdict
from collections.abc import Iterator

from culture.cli import links as figures
from culture.cli.doctor.finding import Finding, error, hint, warning
from culture.cli.doctor.scene import Scene, Server, shown
from culture.config.links import Link
from culture.config.values import Misfit
from culture.federation import book
from culture.federation.book import UnreadableBook

_SHORT = 16
_LINKED = frozenset({"linked", "syncing"})


def readable(scene: Scene) -> Iterator[Finding]:
    """What the command line has written of them."""
    for server in scene.servers:
        file = shown(book.path_of(server.config))
        try:
            scene.links(server)
        except (UnreadableBook, OSError):
            yield error(
                f"{file} cannot be read",
                "it is not known which links there shall be",
                f"mv {file} {file}.old; then `culture mesh link` each once more",
            )
        except Misfit as wrong:
            yield error(f"{file}: {wrong}", "the server does not take such links", "`culture mesh unlink NAME`")


def secrets(scene: Scene) -> Iterator[Finding]:
    """Each link has a secret of its own, and one only."""
    for server in scene.servers:
        same = defaultdict(list)
        for link in scene.good_links(server):
            same[link.secret].append(link.name)
            yield from _secret(link)
        for names in same.values():
            if len(names) > 1:
                yield warning(
                    f"{' and '.join(names)} have the same secret",
                    "whoever knows it of one of them can pass for the other",
                    f"`culture mesh rotate {names[1]} --new-secret FILE`, on both sides",
                )


def _secret(link: Link) -> Iterator[Finding]:
    if len(link.secret) < _SHORT:
        yield hint(
            f"the secret of the link to {link.name} is short",
            f"it has fewer than {_SHORT} characters, and can be guessed",
            f"`culture mesh rotate {link.name} --new-secret FILE`, on both sides",
        )
    if link.old_secret is not None:
        yield hint(
            f"the link to {link.name} still takes its old secret",
            "its change was begun and not finished",
            f"`culture mesh rotate {link.name} --finish`, on both sides",
        )


def certificates(scene: Scene) -> Iterator[Finding]:
    """The peers show the certificates that are expected of them."""
    for server in scene.servers:
        for link in scene.good_links(server):
            if link.endpoint is None or link.fingerprint is None:
                continue
            seen = scene.probe(*link.endpoint, tls=True).fingerprint
            if seen is not None and seen != link.fingerprint:
                yield error(
                    f"{link.name} shows another certificate at {link.address} than its link expects",
                    "they do not link: somebody may have taken its place, or it has a new certificate",
                    f"if it is new: `culture mesh link {link.name} --fingerprint {seen}`",
                )


def states(scene: Scene) -> Iterator[Finding]:
    """Those of running servers are there."""
    for server in scene.servers:
        for row in figures.figures(server.config) if server.note else ():
            if row["state"] in _LINKED:
                yield from _standing(row)
            else:
                yield _missing(server, str(row["name"]), str(row["state"]), str(row.get("problem") or ""))


def _standing(row: dict[str, object]) -> Iterator[Finding]:
    if row.get("secret") == "old":
        yield hint(
            f"{row['name']} is linked by its old secret",
            "the other side does not know the new one yet",
            f"there: `culture mesh rotate {row['name']}` with the new one",
        )


def _missing(server: Server, name: str, state: str, problem: str) -> Finding:
    what = f"{server.config.name} is not linked to {name}{f': {problem}' if problem else f' ({state})'}"
    if "secret" in problem.lower() or "password" in problem.lower():
        why = "the two sides have different secrets for this link"
        return error(what, why, f"`culture mesh link {name} --secret-file FILE`, with the same secret on both sides")
    if "certificate" in problem.lower():
        return error(what, "the two sides do not know each other's certificates", "`culture server cert` prints them")
    why = "what is said is kept for it, and told when it is back"
    return warning(what, why, f"look at {name}: `culture mesh list` there; `culture mesh unlink {name}` for good")
