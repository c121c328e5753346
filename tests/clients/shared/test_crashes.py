"""An agent that dies or hangs is started again, keeps its mail, and leaves nothing behind."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.clients.shared import ending
from culture.clients.shared.daemon import AgentDaemon
from culture.clients.shared.notes import Notes
from culture.clients.shared.records import Records
from culture.clients.shared.recovery import Recovery
from culture.config import paths
from culture.lib.process.orphans import carrying, new_token
from culture.lib.process.pipes import release, spawn
from culture.protocol.vocabulary import AgentState
from culture.server.ircd import IRCd
from tests.clients.shared.test_daemon import NICK, answered, held
from tests.support.agents import FAST, agents_yaml, playbook, prompts, running
from tests.support.client import registered
from tests.support.waiting import until


def processes_of(daemon: AgentDaemon) -> list[int]:
    token = daemon.notes.token
    return carrying(token) if token else []


def agent_pid(daemon: AgentDaemon) -> int:
    return min(processes_of(daemon))


@pytest.mark.fault("E1")
@pytest.mark.requirement("G07", "G08", "G10", "G19")
async def test_killed_in_a_turn_it_goes_on_in_its_session_and_answers_once(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "repeated", "steps": [{"say": "{count}: answered"}]}, {"when": "work", "steps": held(home)}]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        await ori.join("#alerts")
        ori.send(f"PRIVMSG #general :@{NICK} work")
        await until(lambda: prompts(home / "work") != [])
        session = daemon.notes.session
        os.kill(agent_pid(daemon), signal.SIGKILL)
        alert = await ori.expect("PRIVMSG", "#alerts")
        assert alert.params[1] == f"[ERROR] {NICK} crashed: process exited with code -9"
        assert await answered(ori, "#general") == "2: answered"
        assert daemon.notes.session == session
        _, second = prompts(home / "work")
        assert second.splitlines()[0] == f"[IRC @mention in #general] <spark-ori> @{NICK} work"
        assert "repeated: it may have reached you before" in second
        assert second.endswith("(your process had ended and was started again, in the same session)")
        await until(lambda: not daemon.work.busy)
        assert daemon.inbox.counts() == (0, 0)


@pytest.mark.fault("E3")
async def test_whose_program_is_gone_when_it_dies_is_parked_at_once_and_says_why(ircd: IRCd, home: Path) -> None:
    """No crash loop: what it lacks does not come back by trying. A person who has seen to it says resume."""
    file = playbook(home, [{"when": "die", "steps": [{"crash": 3}]}])
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": file})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        await ori.join("#alerts")
        os.unlink(file)
        ori.send(f"PRIVMSG #general :@{NICK} die")
        await ori.expect("PRIVMSG", "#alerts", where=lambda each: each.params[1].startswith("[ERROR]"))
        told = await ori.expect("PRIVMSG", "#alerts", where=lambda each: "[ESCALATION]" in each.params[1])
        assert told.params[1].startswith(f"[ESCALATION] {NICK} cannot start again and is parked: ")
        assert "there is no such file" in told.params[1] and told.params[1].endswith(f"Reply @{NICK} resume")
        assert daemon.presence.state is AgentState.PARKED
        playbook(home, [])
        ori.send(f"PRIVMSG #general :@{NICK} resume")
        assert await answered(ori, "#general") == "heard: die"


@pytest.mark.fault("E2")
@pytest.mark.requirement("G11")
async def test_three_crashes_park_it_until_a_person_resumes_it(
    ircd: IRCd, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rules = [{"when": "die", "steps": [{"crash": 3}]}]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        await ori.join("#alerts")
        ori.send(f"PRIVMSG #general :@{NICK} die")
        # The message is given once more and then given up: a third one is the third crash.
        await ori.expect("NOTICE", "#general", where=lambda each: "I gave up" in each.params[1])
        ori.send(f"PRIVMSG #general :@{NICK} die again")
        told = await ori.expect("PRIVMSG", "#alerts", where=lambda each: "[ESCALATION]" in each.params[1])
        assert told.params[1] == f"[ESCALATION] {NICK} crashed 3 times within 300 s and is parked. Reply @{NICK} resume"
        await until(lambda: daemon.presence.state is AgentState.PARKED and not processes_of(daemon))
        logged = [each.getMessage() for each in caplog.records if "exited with code 3" in each.getMessage()]
        assert len(logged) == 3 and logged[-1].endswith("; parked")
        ori.send(f"PRIVMSG #general :@{NICK} hello")
        notice = await ori.expect("NOTICE", "spark-ori", where=lambda each: "parked" in each.params[1])
        assert "your message is kept" in notice.params[1]
        assert len(prompts(home / "work")) == 3
        ori.send(f"PRIVMSG #general :@{NICK} resume")
        await until(lambda: len(prompts(home / "work")) == 4)
        assert f"@{NICK} hello" in prompts(home / "work")[-1]


@pytest.mark.fault("E4")
async def test_a_turn_without_a_sign_of_life_is_interrupted(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "sleep", "steps": held(home, "never")}]
    quick = {"recovery": {**FAST, "silence": 1.5, "interrupt_grace": 5}}
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)}, rules=quick)
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} sleep")
        told = await ori.expect("NOTICE", "#general")
        assert told.params[1].startswith("[ERROR] no sign of life for ")
        ori.send(f"PRIVMSG #general :@{NICK} awake?")
        assert await answered(ori, "#general") == "heard: awake?"
        assert daemon.inbox.counts() == (0, 0)


@pytest.mark.fault("E4", "E6")
async def test_one_that_does_not_react_is_ended_with_all_it_started(ircd: IRCd, home: Path) -> None:
    rules: list[dict[str, Any]] = [
        {"when": "repeated", "steps": [{"say": "answered"}]},
        {"when": "stuck", "steps": [{"run": "(setsid sleep 600 &) ; trap '' TERM INT; sleep 600"}]},
    ]
    quick = {"recovery": {**FAST, "silence": 3, "interrupt_grace": 0.2}}
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)}, rules=quick)
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} stuck")
        await until(lambda: len(processes_of(daemon)) >= 3)
        token = daemon.notes.token
        assert token is not None
        assert await answered(ori, "#general") == "answered"
        assert carrying(token) == []


@pytest.mark.fault("E6")
async def test_nothing_survives_a_stop(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "work", "steps": [{"run": "(setsid sleep 600 &) ; sleep 600"}]}]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        async with running(config, NICK) as daemon:
            ori.send(f"PRIVMSG #general :@{NICK} work")
            await until(lambda: len(processes_of(daemon)) >= 3)
            token = daemon.notes.token
        assert token is not None
        assert carrying(token) == []


@pytest.mark.fault("E6")
@pytest.mark.parametrize("by", ["the next start", "culture stop"])
async def test_what_a_judgement_left_behind_is_ended(ircd: IRCd, home: Path, by: str) -> None:
    """The daemon was killed while its supervisor judged, and what that had started went on."""
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    records, token = Records(paths.inbox_file(NICK)), new_token()
    Notes(records).judge_token = token
    records.close()
    left = await spawn(["sleep", "600"], home, {"CULTURE_TOKEN": token})
    try:
        if by == "culture stop":
            assert await ending.end(NICK) == (ending.Ended.NOT_THERE, 1)
        else:
            async with running(config, NICK):
                pass
        assert carrying(token) == []
    finally:
        await release(left)


@given(st.lists(st.floats(0, 1000), max_size=30).map(sorted))
def test_it_is_never_started_again_after_so_many_crashes_within_the_window(times: list[float]) -> None:
    recovery = Recovery(5.0, 3, 300.0)
    for position, now in enumerate(times):
        lately = [each for each in times[: position + 1] if now - each <= 300.0]
        restart = recovery.crashed(now)
        assert (restart is None) == (len(lately) >= 3)
        if restart is not None:
            assert restart.fresh == (len(lately) > 1)
            assert restart.delay == 5.0
