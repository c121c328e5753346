"""Who may read what is under ~/.culture, and whose it is."""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from culture.cli.amounts import counted
from culture.cli.doctor.finding import Finding, error, hint, warning
from culture.cli.doctor.scene import Scene, shown
from culture.cli.doctor.walking import Entry
from culture.config import paths
from culture.config.errors import ConfigError
from culture.config.load import load_agents, load_server
from culture.config.provenance import has_secrets
from culture.federation import book

_OTHERS = 0o077
_OURS = ("data", "inbox", "log", "run", "secrets", "tls", "team")
"""The folders in which everything is for its owner alone."""


def home(scene: Scene) -> Iterator[Finding]:
    """The folder that holds everything."""
    try:
        status = scene.home.stat()
    except FileNotFoundError:
        yield hint(f"there is no {shown(scene.home)} yet", "nothing was set up here", "`culture up`")
        return
    if not stat.S_ISDIR(status.st_mode):
        yield error(f"{shown(scene.home)} is no folder", "nothing can be kept there", f"rename it: {_move(scene.home)}")
    elif status.st_uid != os.geteuid():
        yield _foreign([scene.home], scene.home)
    elif stat.S_IMODE(status.st_mode) & paths.PRIVATE_DIRECTORY != paths.PRIVATE_DIRECTORY:
        yield error(
            f"you may not read and write {shown(scene.home)} yourself ({_mode(status)})",
            "nothing works without it",
            f"chmod 700 {shown(scene.home)}",
            _opened(scene.home),
        )
    elif stat.S_IMODE(status.st_mode) & _OTHERS:
        yield warning(
            f"others on this machine may look into {shown(scene.home)} ({_mode(status)})",
            "everything that agents say and know is in it",
            f"chmod 700 {shown(scene.home)}",
            _chmod([scene.home]),
        )


def secrets(scene: Scene) -> Iterator[Finding]:
    """What logs somebody in: tokens, keys, passwords, the secrets of links."""
    known = {entry.path: entry for entry in scene.entries}
    for path in sorted(_secret_files(scene)):
        try:
            status = known[path].status if path in known else path.lstat()
        except FileNotFoundError:
            continue
        if stat.S_ISLNK(status.st_mode):
            if path.parent == scene.home / "secrets":
                yield warning(
                    f"{shown(path)} is a symlink", "a token belongs into a file of its own", f"ls -l {shown(path)}"
                )
            continue
        if stat.S_IMODE(status.st_mode) & _OTHERS:
            yield error(
                f"others on this machine may read {shown(path)} ({_mode(status)})",
                "whoever reads it can log in with it, or take the server's place",
                f"chmod 600 {shown(path)}",
                _chmod([path]),
            )


def _secret_files(scene: Scene) -> Iterator[Path]:
    yield from (scene.home / "secrets").glob("*")
    yield from (scene.home / "tls").glob("*.key")
    yield from (scene.home / "data").glob("*/federation/links.json")
    yield paths.accounts_file()
    yield from _with_secrets()
    for server in scene.servers:
        yield server.config.accounts_file
        yield book.path_of(server.config)
        yield from (each.tls.key for each in server.config.listen if each.tls)


def _with_secrets() -> Iterator[Path]:
    for file, load in ((paths.server_file(), load_server), (paths.agents_file(), load_agents)):
        try:
            if has_secrets(load()):
                yield file
        except ConfigError:
            # It cannot be known what is in it.
            yield file


def others(scene: Scene) -> Iterator[Finding]:
    """Everything else that is for its owner alone."""
    secret = set(_secret_files(scene))
    found = [each for each in scene.entries if _is_open(each, scene.home) and each.path not in secret]
    if found:
        is_shut = not stat.S_IMODE(scene.home.stat().st_mode) & _OTHERS
        say: Callable[..., Finding] = hint if is_shut else warning
        yield say(
            f"others may read {_named([each.path for each in found])}",
            f"as long as {shown(scene.home)} is shut they do not get there"
            if is_shut
            else "what agents and people say is in it",
            f"chmod -R go= {' '.join(shown(scene.home / name) for name in _tops(found, scene.home))}",
            _chmod([each.path for each in found]),
        )


def _is_open(entry: Entry, home: Path) -> bool:
    mode = entry.status.st_mode
    is_kept = entry.path.is_relative_to(home) and entry.path.relative_to(home).parts[:1] in {(name,) for name in _OURS}
    return is_kept and (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and bool(stat.S_IMODE(mode) & _OTHERS)


def owners(scene: Scene) -> Iterator[Finding]:
    """Files of somebody else's, as `sudo culture …` leaves them."""
    foreign = [each.path for each in scene.entries[1:] if each.status.st_uid != os.geteuid()]
    if foreign and scene.entries[0].status.st_uid == os.geteuid():
        yield _foreign(foreign, scene.home)


def _foreign(found: Sequence[Path], home: Path) -> Finding:
    return error(
        f"{_named(found)} {'belongs' if len(found) == 1 else 'belong'} to another user",
        "was it made with sudo? You may not change it, and a server or an agent of yours fails at it",
        f'sudo chown -R "$(id -un)" {shown(home)}',
    )


def _named(found: Sequence[Path]) -> str:
    more = f" and {counted(len(found) - 1, 'other', 'others')}" if len(found) > 1 else ""
    return f"{shown(found[0])}{more}"


def _tops(found: Sequence[Entry], home: Path) -> list[str]:
    return list(dict.fromkeys(each.path.relative_to(home).parts[0] for each in found))


def _mode(status: os.stat_result) -> str:
    return f"mode {stat.S_IMODE(status.st_mode):04o}"


def _move(path: Path) -> str:
    return f"mv {shown(path)} {shown(path)}.old"


def _opened(folder: Path) -> Callable[[], None]:
    return lambda: folder.chmod(paths.PRIVATE_DIRECTORY)


def _chmod(found: Sequence[Path]) -> Callable[[], None]:
    def mend() -> None:
        for path in found:
            status = path.lstat()
            if not stat.S_ISLNK(status.st_mode):
                path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)

    return mend
