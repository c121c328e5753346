"""A daemon that is killed takes its agent's processes with it; one that stops in order leaves nothing to end."""

from pathlib import Path

import pytest

from culture.clients.shared import ending
from culture.lib.process.orphans import carrying
from culture.server.ircd import IRCd
from tests.clients.shared.test_daemon import NICK
from tests.support.agents import agents_yaml, playbook, process, watchdog_of
from tests.support.client import registered
from tests.support.waiting import until


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}/environ").exists()


@pytest.mark.fault("E6")
async def test_what_the_agent_started_ends_with_a_killed_daemon(ircd: IRCd, home: Path) -> None:
    """Also what has left the program's process group, and ignores SIGTERM."""
    away = home / "away"
    stubborn = f"trap '' TERM; touch {away}; while true; do sleep 600; done"
    rules = [{"when": "work", "steps": [{"run": f'setsid sh -c "{stubborn}" & sleep 600'}]}]
    agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        async with process(NICK, home) as daemon:
            await ori.expect("JOIN", "#general")
            ori.send(f"PRIVMSG #general :@{NICK} work")
            await until(away.exists)
            watchdog, [token] = watchdog_of(daemon.pid), ending.tokens(NICK)
            assert watchdog is not None and carrying(token)
            await daemon.kill()
            await until(lambda: not carrying(token) and not is_there(watchdog))


async def test_a_daemon_that_stops_in_order_takes_its_watchdog_along(ircd: IRCd, home: Path) -> None:
    """The next daemon, which may be there at once, has a program of its own that nobody ends."""
    agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        async with process(NICK, home) as daemon:
            await ori.expect("JOIN", "#general")
            before = watchdog_of(daemon.pid)
            assert before is not None and await daemon.stop() == 0 and not is_there(before)
            await daemon.start()
            await ori.expect("JOIN", "#general")
            ori.send(f"PRIVMSG #general :@{NICK} hello")
            assert (await ori.expect("PRIVMSG", "#general")).params[1] == "heard: hello"
            assert watchdog_of(daemon.pid) not in (None, before)
