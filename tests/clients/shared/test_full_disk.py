"""A disk that fills up under a running daemon: people are told, nothing is lost, and it goes on by itself."""

from pathlib import Path

from culture.server.ircd import IRCd
from tests.clients.shared.test_daemon import NICK
from tests.support.agents import agents_yaml, playbook, running
from tests.support.client import registered
from tests.support.small_disk import fill, small_disk


async def test_people_are_told_that_the_disk_is_full_and_the_message_is_answered_later(
    ircd: IRCd, home: Path, tmp_path: Path
) -> None:
    agent = {"nick": NICK, "playbook": playbook(home, [])}
    with small_disk(home / "inbox"):
        config = agents_yaml(home, ircd.port, agent)
        async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
            for channel in ("#general", "#alerts"):
                await ori.join(channel)
            ballast = fill(home / "inbox")
            ori.send(f"PRIVMSG #general :@{NICK} hello")
            told = await ori.expect("NOTICE", "#alerts")
            assert told.source.startswith(NICK)
            assert told.params[1] == (
                f"[ERROR] {NICK} cannot write to its disk: database or disk is full. Nothing is lost, and nothing goes "
                f"on. Make room in {home / 'inbox'}"
            )
            assert (await daemon.service.status())["disk"] == "database or disk is full"
            ballast.unlink()
            assert (await ori.expect("PRIVMSG", "#general", "heard: hello")).source.startswith(NICK)
            back = await ori.expect("NOTICE", "#alerts", f"{NICK} can write to its disk again and goes on.")
            assert back.source.startswith(NICK)
            assert (await daemon.service.status())["disk"] is None
