"""Where daemons listen: for two homes at once, with a symlink where others look, and beside an earlier version."""

import os
import pwd
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from culture.clients.shared.calling import call
from culture.clients.shared.ipc import Request
from culture.clients.shared.skill.call import NoDaemon, check_listener, find_socket
from culture.clients.shared.socket_server import SocketServer
from culture.config import paths
from tests.support.squatter import UID

NICK = "spark-culture"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine with a /tmp of its own; its user has no XDG_RUNTIME_DIR."""
    with TemporaryDirectory(prefix="c-") as name:
        folder = Path(name)
        for each in ("tmp", "ori", "run"):
            (folder / each).mkdir(mode=0o700)
        (folder / "tmp").chmod(0o1777)
        monkeypatch.setattr(paths, "_SHARED", folder / "tmp")
        monkeypatch.setenv("CULTURE_HOME", str(folder / "ori"))
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        yield folder


def alias_of(machine: Path) -> Path:
    return machine / "tmp" / f"culture-{NICK}.sock"


@asynccontextmanager
async def daemon(answer: str) -> AsyncIterator[Path]:
    """The socket of a daemon of the home folder that is set at present."""

    async def handle(request: Request) -> object:
        return answer

    path = paths.agent_socket(NICK)
    server = SocketServer(path, handle, alias=paths.socket_alias(NICK))
    await server.start()
    try:
        yield path
    finally:
        await server.stop()


def leave_nothing(alias: Path) -> None:
    pass


def leave_dangling_symlink(alias: Path) -> None:
    alias.symlink_to(paths.agent_socket(NICK))


def leave_dead_socket(alias: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(alias))


def leave_symlink_of_other_home(alias: Path) -> None:
    alias.symlink_to(alias.parent / "no-home" / alias.name)


@pytest.mark.requirement("H01")
@pytest.mark.parametrize(
    "leave", [leave_nothing, leave_dangling_symlink, leave_dead_socket, leave_symlink_of_other_home]
)
async def test_a_symlink_leads_to_the_socket_while_the_daemon_runs(
    leave: Callable[[Path], None], machine: Path
) -> None:
    """Leftovers of daemons that were killed are replaced."""
    alias = alias_of(machine)
    leave(alias)
    async with daemon("hello") as path:
        assert path == machine / "ori" / "run" / f"culture-{NICK}.sock"
        assert os.readlink(alias) == str(path)
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(str(alias))
        assert await call(NICK, "status") == "hello"
    assert not alias.is_symlink() and not path.exists()


def put_file(alias: Path) -> None:
    alias.write_text("mine")


def put_folder(alias: Path) -> None:
    alias.mkdir()


def put_symlink_of_stranger(alias: Path) -> None:
    alias.symlink_to("/nowhere")
    if os.geteuid() == 0:
        os.lchown(alias, UID, UID)
    else:  # one that leads to somebody who listens is as little touched
        alias.unlink()
        alias.symlink_to("/")


@pytest.mark.parametrize("put", [put_file, put_folder, put_symlink_of_stranger])
async def test_what_others_have_put_under_the_documented_name_stays(put: Callable[[Path], None], machine: Path) -> None:
    alias = alias_of(machine)
    put(alias)
    before = alias.lstat()
    async with daemon("hello"):
        assert await call(NICK, "status") == "hello"
    assert alias.lstat() == before


@pytest.mark.parametrize("runtime", ["", "run"], ids=["without XDG_RUNTIME_DIR", "under one XDG_RUNTIME_DIR"])
async def test_two_homes_have_each_a_daemon_of_one_nick(
    runtime: str, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(machine / runtime))
    async with AsyncExitStack() as stack:
        for home in ("ori", "work"):
            monkeypatch.setenv("CULTURE_HOME", str(machine / home))
            await stack.enter_async_context(daemon(home))
        for home in ("ori", "work"):
            monkeypatch.setenv("CULTURE_HOME", str(machine / home))
            assert await call(NICK, "status") == home
        assert os.readlink(paths.socket_alias(NICK)).startswith(str(machine / (runtime or "ori")))
    assert not paths.socket_alias(NICK).is_symlink()


async def test_the_usual_home_takes_its_name_back_from_another_home_s_symlink(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(machine / "run"))
    entry = pwd.getpwuid(os.geteuid())
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: pwd.struct_passwd((*entry[:5], str(machine), entry[6])))
    async with daemon("other"):
        alias = paths.socket_alias(NICK)
        assert alias.is_symlink()
        monkeypatch.setenv("CULTURE_HOME", str(machine / ".culture"))
        async with daemon("usual") as path:
            assert path == alias and not path.is_symlink()
            assert await call(NICK, "status") == "usual"
        monkeypatch.setenv("CULTURE_HOME", str(machine / "ori"))
        assert await call(NICK, "status") == "other"


async def test_a_daemon_of_an_earlier_version_is_found_until_it_ends(machine: Path) -> None:
    """It listens in /tmp itself, where a symlink, whoever made it, is not followed."""

    async def handle(request: Request) -> object:
        return "earlier"

    earlier = SocketServer(alias_of(machine), handle)
    await earlier.start()
    assert await call(NICK, "status") == "earlier"
    await earlier.stop()
    alias_of(machine).symlink_to(machine / "elsewhere.sock")
    assert find_socket(NICK) == paths.agent_socket(NICK)
    with pytest.raises(NoDaemon):
        await call(NICK, "status")


async def test_a_socket_that_another_user_listens_on_is_not_asked(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's word on who listens, beside the file's owner."""
    async with daemon("hello") as path:
        with socket.socket(socket.AF_UNIX) as wire:
            wire.connect(str(path))
            check_listener(wire)
            with monkeypatch.context() as patch, pytest.raises(OSError, match="belongs to another user"):
                patch.setattr(os, "geteuid", lambda: UID)
                check_listener(wire)
