"""Fixtures of the logger's tests."""

import resource
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from os import geteuid
from pathlib import Path
from typing import Any

import pytest

from culture.server.ircd import IRCd
from culture.skills.logger import Logger
from culture.skills.logger.files import Files
from tests.support.clock import ClockedRuntime
from tests.support.servers import config_for

Logging = Callable[..., AbstractAsyncContextManager[tuple[IRCd, Logger]]]


@asynccontextmanager
async def running(
    tmp_path: Path, clock: Callable[[], float] | None = None, **settings: Any
) -> AsyncIterator[tuple[IRCd, Logger]]:
    """A server called spark that logs into ``logs``, and its skill."""
    general = {"history": {"enabled": False}, "urlindex": {"enabled": False}, **settings.pop("server", {})}
    said = {"enabled": True, "folder": str(tmp_path / "logs"), **settings}
    config = config_for(tmp_path, logger=said, **general)
    ircd = IRCd(config, runtime=ClockedRuntime(clock)) if clock is not None else IRCd(config)
    async with ircd.running():
        skill = ircd.parts.skills.get("logger")
        assert isinstance(skill, Logger)
        yield ircd, skill


@pytest.fixture
def logging(tmp_path: Path) -> Logging:
    """``async with logging(channels=["#a"]) as (ircd, skill)``: a server with these settings of the logger."""
    return partial(running, tmp_path)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the disk did not take is tried again at once."""
    monkeypatch.setattr("culture.skills.logger.writer.Files", partial(Files, retry=0.02))


class Disk:
    """A folder in which there is little room until ``grow``."""

    def __init__(self, folder: Path, grow: Callable[[], None]) -> None:
        self.folder = folder
        self.grow = grow


def _limited(folder: Path) -> Iterator[Disk]:
    """No file of this process may be longer than that: a partial write, then an error, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    set_limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE)
    set_limit((4096, hard))
    try:
        yield Disk(folder, lambda: set_limit((soft, hard)))
    finally:
        set_limit((soft, hard))


def _mounted(folder: Path) -> Iterator[Disk]:
    mount = partial(subprocess.run, check=True)
    mount(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(folder)])
    try:
        yield Disk(folder, lambda: mount(["mount", "-o", "remount,size=1m", str(folder)]) and None)
    finally:
        mount(["umount", "--lazy", str(folder)])


MAY_MOUNT = geteuid() == 0 and shutil.which("mount") is not None


@pytest.fixture(params=["limit", *(["tmpfs"] if MAY_MOUNT else [])])
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Disk]:
    """A disk that is soon full: by a limit on files, and where we may mount one, a real one."""
    folder = tmp_path / "small"
    folder.mkdir()
    yield from (_limited if request.param == "limit" else _mounted)(folder)
