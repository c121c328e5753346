"""Alerts of real daemons: in the channel and at a real receiver."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from culture.clients.shared.skill.call import call
from culture.server.ircd import IRCd
from tests.clients.shared.test_daemon import NICK, answered, held
from tests.support.agents import agents_yaml, playbook, process, prompts, running
from tests.support.client import Client, registered
from tests.support.receiver import HOST, Receiver, hold, receiving
from tests.support.waiting import PATIENCE, until


def hooked(receiver: Receiver, **said: Any) -> dict[str, Any]:
    return {"webhooks": {"url": receiver.url(), "allow_private": [HOST], **said}}


async def alerted(client: Client) -> str:
    return (await client.expect("PRIVMSG", "#alerts")).params[1]


@pytest.mark.requirement("F08", "G09", "J01", "J05", "L09")
async def test_a_crash_is_told_in_the_channel_and_posted(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "repeated", "steps": [{"say": "again"}]}, {"when": "die", "steps": [{"crash": 1}]}]
    async with receiving() as receiver, registered(ircd.port, "spark-ori") as ori:
        config = agents_yaml(
            home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)}, rules=hooked(receiver, secret="x")
        )
        await ori.join("#alerts")
        await ori.join("#general")
        async with running(config, NICK):
            ori.send(f"PRIVMSG #general :@{NICK} die")
            assert await alerted(ori) == f"[ERROR] {NICK} crashed: process exited with code 1"
            (got, *_) = await receiver.got()
            assert got.said["text"] == f"[ERROR] {NICK} crashed: process exited with code 1"
            assert got.said["nick"] == NICK and got.said["link"] == f"irc://127.0.0.1:{ircd.port}/%23general"
            assert got.headers["X-Culture-Signature"].startswith("sha256=")
            assert await answered(ori, "#general") == "again"


@pytest.mark.parametrize("page", ["https://mesh.example.org", None])
async def test_a_question_is_posted_with_its_id_options_place_and_link(
    ircd: IRCd, home: Path, page: str | None
) -> None:
    """The link leads to the web page where culture.yaml tells its address."""
    (home / "culture.yaml").write_text(f"name: spark\n{f'web: {{url: {page!r}}}' if page else ''}\n")
    async with receiving() as receiver, registered(ircd.port, "spark-ori") as ori:
        config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])}, rules=hooked(receiver))
        await ori.join("#general")
        async with running(config, NICK) as daemon:
            asking = asyncio.create_task(daemon.questions.ask("#general", "may I deploy?", 30, ("yes", "no")))
            (got,) = await receiver.got()
            asking.cancel()
    assert (got.said["question"], got.said["options"], got.said["place"]) == ("q1", ["yes", "no"], "#general")
    assert got.said["text"] == f'[QUESTION] {NICK} needs input: "may I deploy?" (q1: yes/no)'
    there = f"{page}/questions/{NICK}/q1" if page else f"irc://127.0.0.1:{ircd.port}/%23general"
    assert got.said["link"] == there


@pytest.mark.requirement("J06", "J08")
async def test_a_finished_task_is_told_once_when_nothing_more_waits(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "sums", "steps": held(home)}]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#alerts")
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} do the sums of @spark-other")
        await until(lambda: len(prompts(home / "work")) == 1)
        ori.send(f"PRIVMSG #general :@{NICK} and the rest")
        await until(lambda: daemon.inbox.counts()[0] == 1)
        (home / "go").touch()
        assert await alerted(ori) == f'[COMPLETE] {NICK} finished task "and the rest". Results in #general.'
        ori.send(f"PRIVMSG #general :@{NICK} ask @spark-other")
        # In the channel nobody is called by what others wrote.
        assert await alerted(ori) == f'[COMPLETE] {NICK} finished task "ask @\u200bspark-other". Results in #general.'


@pytest.mark.requirement("J06")
async def test_what_was_asked_in_private_is_not_told_in_the_channel(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK):
        await ori.join("#alerts")
        ori.send(f"PRIVMSG {NICK} :my password is 1234")
        assert await answered(ori, "spark-ori") == "heard: my password is 1234"
        assert await alerted(ori) == f'[COMPLETE] {NICK} finished task "(private)". Results in private.'


@pytest.mark.requirement("J06")
async def test_what_was_broken_off_is_not_finished(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "sums", "steps": held(home, "never")}]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#alerts")
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} do the sums")
        await until(lambda: len(prompts(home / "work")) == 1)
        await daemon.service.abort()
        await until(lambda: not daemon.work.busy)
        ori.send(f"PRIVMSG #general :@{NICK} hello")
        assert await alerted(ori) == f'[COMPLETE] {NICK} finished task "hello". Results in #general.'


@pytest.mark.fault("H1")
@pytest.mark.requirement("J07")
async def test_a_receiver_that_never_answers_does_not_delay_the_agent(ircd: IRCd, home: Path) -> None:
    async with receiving() as receiver, registered(ircd.port, "spark-ori") as ori:
        receiver.answers = [hold, hold, hold]
        config = agents_yaml(
            home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])}, rules=hooked(receiver, timeout=0.5)
        )
        await ori.join("#general")
        async with running(config, NICK) as daemon:
            for word in ("one", "two", "three"):
                ori.send(f"PRIVMSG #general :@{NICK} {word}")
                assert await answered(ori, "#general") == f"heard: {word}"
            await until(lambda: daemon.webhook.status()["failures"] >= 1)
            shown = (await daemon.service.status())["webhook"]
            assert isinstance(shown, dict) and shown["last_failure"] == "no answer within 0.5 s"


@pytest.mark.fault("H10")
async def test_killed_while_a_post_is_under_way_it_is_known_afterwards(ircd: IRCd, home: Path) -> None:
    async with receiving() as receiver, registered(ircd.port, "spark-ori") as ori:
        receiver.answers = [hold]
        agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])}, rules=hooked(receiver))
        await ori.join("#general")
        async with process(NICK, home) as daemon:
            await ori.expect("JOIN", where=lambda line: line.source.startswith(f"{NICK}!"))
            ori.send(f"PRIVMSG #general :@{NICK} hello")
            await receiver.got()
            await daemon.kill()
            await daemon.start()
            await ori.expect("JOIN", where=lambda line: line.source.startswith(f"{NICK}!"))
            ori.send(f"PRIVMSG #general :@{NICK} again")
            (_, got) = await receiver.got(2)
            assert 'finished task "again"' in got.said["text"], "the first is not posted a second time"
            facts = await asyncio.to_thread(call, NICK, "status", patience=PATIENCE)
            assert isinstance(facts, dict) and facts["webhook"]["unknown"] == 1
            log = daemon.log.read_text(encoding="utf-8")
            assert f"it is unknown whether {HOST} was told of 1 alert(s)" in log and "s3cret" not in log
