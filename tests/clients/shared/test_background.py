"""The place of what an agent's program does beside its turns."""

from pathlib import Path

from culture.clients.shared.background import MOST, NOWHERE, BackgroundWork
from culture.clients.shared.turn import News
from culture.server.ircd import IRCd
from tests.clients.shared.test_daemon import NICK
from tests.support.agents import agents_yaml, playbook, prompts, running
from tests.support.client import registered
from tests.support.waiting import until


def test_a_sub_agents_call_belongs_to_the_place_where_the_sub_agent_was_begun() -> None:
    work = BackgroundWork()
    work.place = lambda: "#secret"
    work.called("begins sub-agent")
    work.place = lambda: "#general"
    work.called("its command", parent="begins sub-agent")
    work.called("another command")
    work.started("task-1", "its command")
    work.started("task-2", "another command")
    work.runs(["task-1", "task-2", "task-3"])
    assert (work.running_in("#SECRET"), work.running_in("#general")) == (1, 1)
    work.runs([])
    assert work.running_in("#secret") == 0


def test_a_wake_up_belongs_to_the_place_where_it_was_asked_for() -> None:
    work = BackgroundWork()
    work.place = lambda: "spark-ori"
    work.called("schedules")
    work.scheduled("look again", "schedules")
    work.place = lambda: "#general"
    assert work.place_of_wakeup("look again") == "spark-ori"
    assert work.place_of_wakeup("something else") == NOWHERE == work.place_of("unknown call")


def test_the_oldest_calls_are_forgotten() -> None:
    work = BackgroundWork()
    work.place = lambda: "#general"
    for number in range(MOST + 1):
        work.called(str(number))
    assert (work.place_of("0"), work.place_of("1"), work.place_of(str(MOST))) == (NOWHERE, "#general", "#general")


async def test_news_of_nobody_knows_where_is_answered_nowhere(ircd: IRCd, home: Path) -> None:
    """Rather than in a place to which it may not belong."""
    async with registered(ircd.port, "spark-ori", "message-tags echo-message") as ori:
        await ori.join("#general")
        config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
        async with running(config, NICK) as daemon:
            daemon.minding.on_news(News("cron-1", NOWHERE, "look at the salaries"))
            await until(lambda: daemon.inbox.spent_ever().turns == 1 and not daemon.work.busy)
            ori.send(f"PRIVMSG #general :@{NICK} what now?")
            await ori.expect("PRIVMSG", "#general", where=lambda each: each.params[1].startswith("heard: "))
    assert not any("salaries" in param for each in ori.seen for param in each.params)
    assert "what you say in this turn is posted nowhere" in prompts(home / "work")[0]


async def test_news_that_comes_every_minute_is_one_message_and_begins_no_turn_of_an_agent_that_stood_down(
    ircd: IRCd, home: Path
) -> None:
    async with registered(ircd.port, "spark-ori", "message-tags echo-message") as ori:
        await ori.join("#general")
        config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
        async with running(config, NICK) as daemon:
            daemon.notes.paused = True
            for minute in range(3):
                daemon.minding.on_news(News(f"cron-{minute}", "#general", "look at the build"))
            assert daemon.inbox.counts() == (1, 0)
            daemon.notes.stood_down, daemon.notes.paused = True, False
            daemon.minding.on_news(News("cron-3", "#general", "look at the tests"))
            await ori.expect("PRIVMSG", "#general", "heard: [SELF] look at the build")
            await until(lambda: not daemon.work.busy)
            assert (daemon.inbox.counts(), daemon.inbox.held()) == ((0, 0), 1)
            ori.send(f"PRIVMSG #general :@{NICK} go on")
            await ori.expect("PRIVMSG", "#general", "heard: [SELF] look at the tests")
