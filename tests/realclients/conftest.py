"""Two people with clients of their own in one channel."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.server.ircd import IRCd
from tests.realclients.irssi import irssi
from tests.realclients.people import GENERAL, Pair
from tests.realclients.weechat import weechat
from tests.support.servers import serving


@pytest.fixture(autouse=True)
def programs() -> None:
    """Skip where the clients are not installed."""
    missing = [name for name in ("weechat-headless", "irssi", "tmux", "openssl") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


@pytest.fixture
async def ircd(tmp_path: Path) -> AsyncIterator[IRCd]:
    """A server called spark with default settings."""
    async with serving(tmp_path) as running:
        yield running


@pytest.fixture
async def pair(ircd: IRCd, tmp_path: Path) -> AsyncIterator[Pair]:
    """Both are in ``#general`` and see each other."""
    address = ("-c", "127.0.0.1", "-p", str(ircd.port), "-n", "spark-iris")
    async with (
        irssi(tmp_path / "irssi", *address) as iris,
        weechat(tmp_path / "weechat", f"irc://spark-wendy@127.0.0.1:{ircd.port}/#general") as wendy,
    ):
        await wendy.shows("Channel #general: 1 nick", GENERAL)
        await iris.shows("Welcome to the culture IRC Network spark-iris")
        await iris.type("/join #general")
        await iris.shows(r"#general: Total of 2 nicks \[1 ops")
        await wendy.shows(r"spark-iris \(.*\) has joined #general", GENERAL)
        yield Pair(wendy, iris)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home for agents, and sockets of our own."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("CULTURE_HOME", str(folder))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder
