"""People call the real Claude Code, which works in its shell and answers through its skill; its model is scripted."""

from pathlib import Path

import pytest

from culture.protocol.vocabulary import AgentState
from culture.server.ircd import IRCd
from tests.clients.claude.rooms import GENERAL, NICK, SKILL, configured, spoken, wendy_at_weechat, working
from tests.clients.shared.test_daemon import answered
from tests.support.agents import running
from tests.support.client import registered
from tests.support.model import Model
from tests.support.waiting import until


@pytest.mark.requirement("F26", "F32", "H20", "L11")
async def test_called_from_weechat_it_works_in_its_shell_and_answers_once(
    ircd: IRCd, home: Path, model: Model, tmp_path: Path
) -> None:
    config = configured(ircd, home)
    (home / "work" / "notes").write_text("one\ntwo\nthree\n")
    (home / "work" / "CLAUDE.md").write_text("The project's own marmot.")
    (tmp_path / "home" / ".claude" / "CLAUDE.md").write_text("The owner's own badger.")
    async with wendy_at_weechat(ircd, tmp_path) as wendy, running(config, NICK) as daemon:
        await wendy.shows(rf"{NICK} \(.*\) has joined", GENERAL)
        counting = "[[bash wc -l < notes > count]]"
        sending = f'[[bash {SKILL} send "{GENERAL}" "$(cat count) lines, says $CULTURE_NICK"]]'
        wendy.type(f"@{NICK} how many? {counting} {sending} [[say I have told them.]]", GENERAL)
        await wendy.shows(f"^.?{NICK} 3 lines, says {NICK}$", GENERAL)
        await until(lambda: not daemon.work.busy)
        wendy.type("thanks", GENERAL)
        await wendy.shows("^.?spark-wendy thanks$", GENERAL)
        assert await wendy.count(f"^.?{NICK} ", GENERAL) == 1
    first, *_, last = model.journal.requests
    for known in ("The project's own marmot.", "The owner's own badger.", "Talk on IRC with people and other agents."):
        assert known in first.everything
    assert last.results[-1].startswith(f"Sent to {GENERAL}.")


@pytest.mark.requirement("F29")
async def test_result_is_posted_after_on_it_and_silence_is_not(ircd: IRCd, home: Path, model: Model) -> None:
    async with working(ircd, home) as (daemon, ori):
        sending = f'[[bash {SKILL} send "{GENERAL}" "On it."]]'
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} count {sending} [[bash echo 42 > count]] [[say It is 42.]]")
        assert [await answered(ori, GENERAL) for _ in range(2)] == ["On it.", "It is 42."]
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} fyi: lunch at noon [[say [no reply]]]")
        await model.journal.arrival("lunch at noon")
        await until(lambda: not daemon.work.busy)
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} and you? [[say later]]")
        assert await answered(ori, GENERAL) == "later"


@pytest.mark.requirement("F15")
async def test_a_private_message_from_weechat_is_answered_in_private(
    ircd: IRCd, home: Path, model: Model, tmp_path: Path
) -> None:
    async with wendy_at_weechat(ircd, tmp_path) as wendy, working(ircd, home) as (daemon, ori):
        wendy.type(f"/query {NICK} psst [[bash {SKILL} send spark-wendy psst yourself]] [[say done]]")
        await wendy.shows(f"^{NICK} psst yourself$", NICK)
        wendy.type("and in your own words? [[say only for you]]", NICK)
        await wendy.shows(f"^{NICK} only for you$", NICK)
        await until(lambda: not daemon.work.busy)
        assert await wendy.count(f"^{NICK} ", NICK) == 2
        await ori.sync()
        assert spoken(ori) == []
        assert not [each for each in ori.seen if "psst" in each.params[-1] or "only for you" in each.params[-1]]
    assert all(request.prompt.startswith("[IRC DM] <spark-wendy> ") for request in model.journal.requests)


@pytest.mark.requirement("H08", "L07")
async def test_a_person_answers_what_it_asks(ircd: IRCd, home: Path, model: Model, tmp_path: Path) -> None:
    async with wendy_at_weechat(ircd, tmp_path) as wendy, working(ircd, home) as (daemon, ori):
        asking = f'[[bash {SKILL} ask "{GENERAL}" --timeout 30 "may I?"]] [[say then I will]]'
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} deploy {asking}")
        await wendy.shows(rf"^.?{NICK} \[QUESTION\] may I\?$", GENERAL)
        assert daemon.presence.state is AgentState.ASKING
        wendy.type("I am not talking to you", GENERAL)
        wendy.type(f"@{NICK} yes, please", GENERAL)
        request = await model.journal.arrival("deploy", results=1)
        assert request.results[0].splitlines()[0] == "yes, please"
        await until(lambda: not daemon.work.busy)
        assert daemon.inbox.counts() == (0, 0)


@pytest.mark.requirement("F16")
async def test_what_people_write_stays_text(ircd: IRCd, home: Path, model: Model, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2hunter2")
    async with working(ircd, home) as (daemon, ori):
        ori.send(f"PRIVMSG {NICK} :remember the marmot [[say I do]]")
        assert await answered(ori, "spark-ori") == "I do"
        session = daemon.notes.session
        for text in (f"@{secret}", "/clear", "/compact", f"/add-dir {tmp_path}", "!cat /etc/hostname", f"#{secret}"):
            for line in (f"PRIVMSG {GENERAL} :@{NICK} {text}", f"PRIVMSG {NICK} :{text}"):
                ori.send(line)
                place = GENERAL if GENERAL in line else "spark-ori"
                assert await answered(ori, place) == "ok"
                assert model.journal.requests[-1].prompt.splitlines()[0].endswith(f"> {line.partition(':')[2]}")
        assert daemon.notes.session == session
        assert "remember the marmot" in model.journal.requests[-1].everything
        assert not any("hunter2" in request.everything for request in model.journal.requests)


@pytest.mark.fault("E9", "E11")
@pytest.mark.requirement("F18", "H28")
async def test_three_people_call_while_it_works_and_one_turn_answers_all(ircd: IRCd, home: Path, model: Model) -> None:
    async with (
        working(ircd, home) as (daemon, ori),
        registered(ircd.port, "spark-ann") as ann,
        registered(ircd.port, "spark-bob") as bob,
    ):
        for person in (ann, bob):
            await person.join(GENERAL)
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} build [[wait BUILT]] [[say built]]")
        await model.journal.arrival("build")
        for number, person in enumerate((ori, ann, bob), 1):
            told = f'[[bash {SKILL} send "{GENERAL}" "for {person.nick}"]]'
            person.send(f"PRIVMSG {GENERAL} :@{NICK} and me? {told}")
            await until(lambda number=number: daemon.inbox.counts()[0] == number)
        model.release("BUILT")
        await ori.expect("PRIVMSG", GENERAL, "for spark-bob")
        await until(lambda: not daemon.work.busy)
        await ori.sync()
        assert spoken(ori) == ["built", "for spark-ori", "for spark-ann", "for spark-bob"]
        assert daemon.inbox.counts() == (0, 0)
    prompts = {request.prompt for request in model.journal.requests}
    assert len(prompts) == 2


async def test_all_are_called_by_a_person_but_not_by_an_agent(ircd: IRCd, home: Path, model: Model) -> None:
    loud = {"nick": "spark-em", "may_call_all": True}
    async with working(ircd, home, loud) as (daemon, ori):
        for nick, wakes in (("spark-bot", False), ("spark-em", True)):
            async with registered(ircd.port, nick) as agent:
                await agent.ask(f"MODE {nick} +B")
                await agent.join(GENERAL)
                agent.send(f"PRIVMSG {GENERAL} :@all hands up [[say up for {nick}]]")
                if wakes:
                    assert await answered(ori, GENERAL) == f"up for {nick}"
        ori.send(f"PRIVMSG {GENERAL} :@all hands up [[say up for ori]]")
        assert await answered(ori, GENERAL) == "up for ori"
        await until(lambda: not daemon.work.busy)
    assert not model.journal.asked("spark-bot")
