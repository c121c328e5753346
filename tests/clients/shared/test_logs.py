"""What a daemon in the background prints does not fill the disk."""

import logging
import os
from pathlib import Path

import pytest

from culture.clients.shared import logs
from culture.clients.shared.logs import Bound, older
from culture.config import paths
from culture.server.ircd import IRCd
from tests.clients.shared.test_daemon import NICK, until
from tests.support.agents import DaemonProcess, agents_yaml, playbook
from tests.support.client import registered


def test_a_log_that_is_too_long_begins_anew_for_all_who_write_into_it(tmp_path: Path) -> None:
    file = tmp_path / "log" / "spark-claude.log"
    agent = paths.open_private(file, os.O_WRONLY | os.O_APPEND)
    handler, record = Bound(file, most=100), logging.makeLogRecord({})
    for number in range(30):
        # Its programs write into the same file.
        os.write(agent, f"line {number}\n".encode())
        handler.emit(record)
        assert file.stat().st_size <= 100
    os.close(agent)
    kept = older(file).read_text() + file.read_text()
    assert kept.split("\n")[-2] == "line 29"
    assert kept.count("line") > 10
    assert older(file).stat().st_mode & 0o777 == 0o600


def test_what_is_not_its_log_is_left_alone(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(logging.getLogger().handlers)
    with (tmp_path / "elsewhere").open("w") as printed:
        monkeypatch.setattr(logs.sys, "stderr", printed)  # type: ignore[attr-defined]
        logs.bound(NICK)
    assert logging.getLogger().handlers == before


async def test_a_daemon_keeps_its_own_log_within_bounds(ircd: IRCd, home: Path) -> None:
    agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    daemon = DaemonProcess(NICK, home)
    daemon.log = paths.log_file(NICK)
    os.close(paths.open_private(daemon.log, os.O_WRONLY))
    with daemon.log.open("w") as log:
        log.write("x" * (logs.MOST + 1))
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        await daemon.start()
        await until(
            lambda: f"{NICK} is ready" in older(daemon.log).read_text() if older(daemon.log).exists() else False
        )
        assert daemon.log.stat().st_size < logs.MOST
        assert await daemon.stop() == 0
