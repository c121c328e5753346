"""What a daemon in the background prints does not fill the disk."""

import os
from pathlib import Path

from culture.clients.shared.main import LOG_BYTES
from culture.config import paths
from culture.lib.files import open_private
from culture.lib.process.log_rotation import rotated
from culture.server.ircd import IRCd
from tests.clients.shared.test_daemon import NICK
from tests.support.agents import DaemonProcess, agents_yaml, playbook
from tests.support.client import registered
from tests.support.waiting import until


async def test_a_daemon_keeps_its_own_log_within_bounds(ircd: IRCd, home: Path) -> None:
    agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    daemon = DaemonProcess(NICK, home)
    daemon.log = paths.log_file(NICK)
    os.close(open_private(daemon.log, os.O_WRONLY))
    with daemon.log.open("w") as log:
        log.write("x" * (LOG_BYTES + 1))
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        await daemon.start()
        await until(
            lambda: f"{NICK} is ready" in rotated(daemon.log).read_text() if rotated(daemon.log).exists() else False
        )
        assert daemon.log.stat().st_size < LOG_BYTES
        assert await daemon.stop() == 0
