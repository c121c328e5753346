"""How the real programs of four makers end: with a stop while they hang, and with a daemon that is killed."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from culture.clients.shared import ending
from culture.lib.process.orphans import carrying
from culture.server.ircd import IRCd
from tests.clients import test_four_makers as makers
from tests.clients.test_four_makers import GENERAL, NICKS, company
from tests.support.agents import process, watchdog_of
from tests.support.client import registered
from tests.support.model import Model
from tests.support.waiting import until

home, ircd, model = makers.home, makers.ircd, makers.model
MOST = 5.0


def programs(nick: str) -> list[int]:
    """The processes of an agent."""
    return [pid for token in ending.tokens(nick) for pid in carrying(token)]


@pytest.mark.fault("E6")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("nick", NICKS)
async def test_a_program_that_hangs_is_stopped_and_one_whose_daemon_is_killed_ends(
    nick: str, ircd: IRCd, home: Path, model: Model
) -> None:
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join(GENERAL)
        async with company(ircd, home, model, nicks=[nick]) as daemons:
            await until(lambda: daemons[nick].keeper.ready)
            left = programs(nick)
            assert left
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            begun = time.monotonic()
        assert time.monotonic() - begun < MOST
        assert not set(left) & set(programs(nick))

        async with process(nick, home) as daemon:
            await until(lambda: bool(programs(nick)) and watchdog_of(daemon.pid) is not None)
            await ori.expect("JOIN", GENERAL, where=lambda line: line.source.startswith(f"{nick}!"))
            await daemon.kill()
            await until(lambda: not programs(nick))
