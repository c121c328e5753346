"""No turn without a budget: warned at four fifths, parked when it is spent, back with the next day."""

from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.clients.shared.budget import Level, Quota, Spent, reset, standing
from culture.clients.shared.inbox import Inbox
from culture.clients.shared.notes import Notes
from culture.clients.shared.purse import Purse
from culture.clients.shared.records import Records
from culture.clients.shared.turn import Turn
from culture.config.agents import BudgetConfig
from culture.protocol.vocabulary import AgentState
from culture.server.ircd import IRCd
from tests.clients.shared.test_daemon import NICK, answered, held
from tests.support.agents import agents_yaml, playbook, prompts, running
from tests.support.client import registered
from tests.support.clock import ClockedRuntime
from tests.support.waiting import until


@given(st.integers(0, 3000), st.floats(0, 30, allow_nan=False), st.integers(0, 30))
def test_the_tightest_limit_decides(tokens: int, cost: float, turns: int) -> None:
    budget = BudgetConfig(tokens_per_day=1000, usd_per_day=10.0, turns_per_day=10)
    share = max(tokens / 1000, cost / 10, turns / 10)
    level = Level.GONE if share >= 1 else Level.LOW if share >= 0.8 else Level.FINE
    assert standing(budget, Spent(tokens, cost, turns), Spent()).level is level
    assert standing(BudgetConfig(), Spent(tokens, cost, turns), Spent(tokens, cost, turns)).level is Level.FINE


def test_what_is_spent_for_good_does_not_come_back() -> None:
    gone = standing(BudgetConfig(usd_total=1.0), Spent(), Spent(0, 1.5, 0))
    assert gone.level is Level.GONE and not gone.resets and gone.limit == "1.50 of 1.0 dollars in all"


@pytest.mark.fault("E32")
@given(st.floats(0, 2), st.floats(0, 2), st.integers(1, 100), st.integers(0, 20))
def test_of_a_subscription_windows_count_and_cents_do_not(short: float, long: float, most: int, turns: int) -> None:
    budget = BudgetConfig(usd_per_day=1.0, usd_total=1.0, turns_per_day=10, window_pct=most)
    spent, quotas = Spent(0, 999.0, turns), [Quota("five_hour", short, 1.0), Quota("seven_day", long, 2.0)]
    share = max(round(100 * short, 2) / most, round(100 * long, 2) / most, turns / 10)
    level = Level.GONE if share >= 1 else Level.LOW if share >= 0.8 else Level.FINE
    assert standing(budget, spent, spent, quotas).level is level
    assert standing(budget, Spent(), spent, []).level is Level.FINE
    assert standing(budget, Spent(), spent).level is Level.GONE


@pytest.mark.fault("E32")
async def test_a_window_of_the_provider_warns_parks_and_comes_back_by_itself(ircd: IRCd, home: Path) -> None:
    default = [{"usage": {"tokens": 450, "cost_usd": 5.0}}, {"say": "{count}"}]
    limits = {"usd_per_day": 1, "window_pct": 90}
    agent = {"nick": NICK, "playbook": playbook(home, [], default), "budget": limits}
    config = agents_yaml(home, ircd.port, agent)
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        async with running(config, NICK) as daemon:
            now = datetime.now().astimezone()
            ends = (now + timedelta(hours=2)).timestamp()
            for count, used in (("1", 0.5), ("2", 0.75), ("3", 0.8), ("4", 0.93)):
                daemon.minding.on_quotas([Quota("five_hour", used, ends)])
                ori.send(f"PRIVMSG #general :@{NICK} work")
                if count != "4":
                    assert await answered(ori, "#general") == count
                    await until(lambda: not daemon.work.busy)
            await ori.expect("NOTICE", "spark-ori", where=lambda each: "your message is kept" in each.params[1])
            assert daemon.presence.state is AgentState.PARKED
            told = [each.params[1] for each in ori.seen if each.verb == "NOTICE" and "[BUDGET]" in each.params[1]]
            assert [each.split(";")[0] for each in told] == [
                "[BUDGET] little is left: 75 of 90 percent of the five hour window are used",
                "[BUDGET] I am parked: 93 of 90 percent of the five hour window are used",
            ]
            ori.send(f"PRIVMSG #general :@{NICK} budget")
            said = await ori.expect("NOTICE", "spark-ori", where=lambda each: "Today" in each.params[1])
            assert "$15.00 (notional). five hour window: 93 % until " in said.params[1]
            assert "the budget is spent (93 of 90 percent of the five hour window)" in said.params[1]
        async with running(config, NICK) as daemon:
            assert daemon.presence.state is AgentState.PARKED, "it is remembered"
            daemon.purse._now = lambda: now + timedelta(hours=2, seconds=1)
            daemon.work.wake()
            assert await answered(ori, "#general") == "4"


async def test_a_login_that_is_no_longer_a_subscription_s_is_metered_again(ircd: IRCd, home: Path) -> None:
    default = [{"usage": {"tokens": 450, "cost_usd": 5.0}}, {"say": "{count}"}]
    agent = {"nick": NICK, "playbook": playbook(home, [], default), "budget": {"usd_per_day": 1}}
    config = agents_yaml(home, ircd.port, agent)
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        async with running(config, NICK) as daemon:
            daemon.purse.told([Quota("five_hour", 0.1, datetime.now().timestamp() + 3600)])
            ori.send(f"PRIVMSG #general :@{NICK} work")
            assert await answered(ori, "#general") == "1"
        async with running(config, NICK) as daemon:
            assert daemon.purse.is_subscription
            ori.send(f"PRIVMSG #general :@{NICK} work")
            assert await answered(ori, "#general") == "2"
            parked = await ori.expect("NOTICE", "#general", where=lambda each: "I am parked" in each.params[1])
            assert "10 of 1.0 dollars a day are used" in parked.params[1]
            assert not daemon.purse.is_subscription


async def test_it_is_warned_then_parked_and_goes_on_the_next_day(ircd: IRCd, home: Path) -> None:
    default = [{"usage": {"tokens": 450, "cost_usd": 0.1}}, {"say": "{count}"}]
    agent = {"nick": NICK, "playbook": playbook(home, [], default), "budget": {"tokens_per_day": 1000}}
    async with registered(ircd.port, "spark-ori") as ori, running(agents_yaml(home, ircd.port, agent), NICK) as daemon:
        await ori.join("#general")
        for count in ("1", "2"):
            ori.send(f"PRIVMSG #general :@{NICK} work")
            assert await answered(ori, "#general") == count
        warned = await ori.expect("NOTICE", "#general")
        assert warned.params[1].startswith(
            "[BUDGET] little is left: 900 of 1,000 tokens a day are used; it begins anew"
        )
        ori.send(f"PRIVMSG #general :@{NICK} work")
        assert await answered(ori, "#general") == "3"
        parked = await ori.expect("NOTICE", "#general")
        assert parked.params[1].startswith("[BUDGET] I am parked: 1,350 of 1,000 tokens a day are used; it begins anew")
        await until(lambda: daemon.presence.state is AgentState.PARKED)
        ori.send(f"PRIVMSG #general :@{NICK} more")
        told = await ori.expect("NOTICE", "spark-ori", where=lambda each: "parked" in each.params[1])
        assert "the budget is spent" in told.params[1] and "your message is kept" in told.params[1]
        assert len(prompts(home / "work")) == 3
        tomorrow = reset(datetime.now().astimezone()) + timedelta(minutes=1)
        daemon.purse._now = lambda: tomorrow
        daemon.work.wake()
        assert await answered(ori, "#general") == "4"


@pytest.mark.fault("E31")
async def test_what_a_budget_cut_off_is_kept_and_goes_on_the_next_day(ircd: IRCd, home: Path) -> None:
    """Who called is neither answered nor told that they never will be: so it comes again."""
    steps: list[dict[str, Any]] = [{"usage": {"tokens": 1200}}, *held(home)[:1], {"run": "true"}, *held(home, "never")]
    rules = [{"when": "repeated", "steps": [{"say": "went on"}]}, {"when": "work", "steps": steps}]
    agent = {"nick": NICK, "playbook": playbook(home, rules), "budget": {"tokens_per_day": 1000}}
    async with registered(ircd.port, "spark-ori") as ori, running(agents_yaml(home, ircd.port, agent), NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} work")
        await until(lambda: prompts(home / "work") != [])
        daemon.minding.on_usage(1200, 0.0)
        (home / "go").touch()
        await ori.expect("NOTICE", "#general", where=lambda each: "I am parked" in each.params[1])
        assert daemon.inbox.counts() == (1, 0)
        assert daemon.inbox.spent(0).tokens == 1200
        tomorrow = reset(datetime.now().astimezone()) + timedelta(minutes=1)
        daemon.purse._now = lambda: tomorrow
        daemon.work.wake()
        assert await answered(ori, "#general") == "went on"
        await until(lambda: daemon.inbox.counts() == (0, 0))
    cut = (
        'your turn was cut off: your budget was spent. Its messages come again; it was about "work", asked by spark-ori'
    )
    assert cut in prompts(home / "work")[-1]


async def test_killing_the_daemon_makes_no_turn_free(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "work", "steps": held(home)}]
    agent = {"nick": NICK, "playbook": playbook(home, rules), "budget": {"tokens_per_day": 1000}}
    config = agents_yaml(home, ircd.port, agent)
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        async with running(config, NICK) as daemon:
            ori.send(f"PRIVMSG #general :@{NICK} work")
            await until(lambda: daemon.work.busy)
            daemon.minding.on_usage(900, 0.0)
            daemon.minding.on_usage(1100, 0.0)
        # No turn has ended: as little is known as after kill -9.
        async with running(config, NICK) as daemon:
            assert daemon.inbox.spent(0).tokens == 1100
            assert daemon.presence.state is AgentState.PARKED
        async with running(config, NICK) as daemon:
            assert daemon.inbox.spent(0).tokens == 1100


@pytest.mark.fault("E34")
async def test_a_provider_s_limit_parks_it_until_a_person_resumes_it(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#alerts")
        await ori.join("#general")
        now = datetime.now().astimezone()
        daemon.purse.limited(now + timedelta(hours=1))
        told = await ori.expect("NOTICE", "#alerts")
        assert "the provider's usage limit is reached until" in told.params[1] and "say resume then" in told.params[1]
        ori.send(f"PRIVMSG #general :@{NICK} hello")
        await until(lambda: daemon.inbox.counts()[0] == 1)
        daemon.purse._now = lambda: now + timedelta(hours=2)
        daemon.work.wake()
        ori.send(f"PRIVMSG #general :@{NICK} status")
        said = await ori.expect("NOTICE", "spark-ori", where=lambda each: "1 unread" in each.params[1])
        assert "I go on when a person says resume" in said.params[1]
        ori.send(f"PRIVMSG #general :@{NICK} resume")
        assert await answered(ori, "#general") == "heard: hello"


async def test_a_turn_that_ends_at_the_provider_s_limit_comes_again_and_is_no_error(ircd: IRCd, home: Path) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [], held(home))})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} hello")
        await until(lambda: daemon.work.busy)
        over = datetime.now().astimezone() + timedelta(hours=1)
        await daemon.minding.on_turn(Turn(error="You have hit your limit", limited_until=over.timestamp()))
        assert not daemon.work.busy and daemon.inbox.counts()[0] == 1
        await until(lambda: not daemon.records.execute("SELECT count(*) FROM outbox").fetchone()[0])
        await ori.sync()
        assert not any("[ERROR]" in line.params[-1] for line in ori.seen if line.verb == "NOTICE")


@pytest.mark.parametrize("told", ["limit", "window"])
async def test_when_the_time_of_a_limit_is_over_everybody_sees_it(ircd: IRCd, home: Path, told: str) -> None:
    """Also when nothing waits for the agent."""
    agent = {"nick": NICK, "budget": {"resume_after_limit": True, "window_pct": 90}}
    config = agents_yaml(home, ircd.port, {**agent, "playbook": playbook(home, [])})
    async with running(config, NICK) as daemon:
        over = datetime.now().astimezone() + timedelta(seconds=1)
        if told == "limit":
            await daemon.minding.on_turn(Turn(limited_until=over.timestamp()))
        else:
            daemon.minding.on_quotas([Quota("five_hour", 0.95, over.timestamp())])
        assert daemon.presence.state is AgentState.PARKED
        await until(lambda: daemon.presence.state is AgentState.IDLE)


def test_a_day_that_ends_while_one_looks_at_it_is_not_followed_by_a_day_of_waiting(home: Path) -> None:
    records = Records(home / "inbox" / f"{NICK}.db")
    midnight = reset(datetime.now().astimezone())
    notes = Notes(records)
    inbox = Inbox(records, notes, runtime=ClockedRuntime((midnight - timedelta(hours=1)).timestamp))
    inbox.begin([], "tea")
    looks = count(-2)
    runtime = ClockedRuntime(lambda: midnight.timestamp() + next(looks))
    purse = Purse(BudgetConfig(turns_per_day=1), inbox, notes, print, runtime=runtime)
    left = purse.seconds_left()
    assert left is not None and left < 10
    records.close()


@pytest.mark.fault("E34")
@pytest.mark.parametrize("said", [None, False])
async def test_after_the_limit_of_a_subscription_it_goes_on_by_itself(
    ircd: IRCd, home: Path, said: bool | None
) -> None:
    """With a subscription that is the default; what the configuration says goes over it."""
    budget = {} if said is None else {"resume_after_limit": said}
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, []), "budget": budget})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        over = datetime.now().astimezone() + timedelta(hours=1)
        daemon.minding.on_quotas([Quota("five_hour", 1.0, over.timestamp())])
        await daemon.minding.on_turn(Turn(limited_until=over.timestamp()))
        ori.send(f"PRIVMSG #general :@{NICK} hello")
        await until(lambda: daemon.inbox.counts()[0] == 1)
        assert daemon.presence.state is AgentState.PARKED
        daemon.purse._now = lambda: over + timedelta(seconds=1)
        daemon.work.wake()
        if said is None:
            assert await answered(ori, "#general") == "heard: hello"
        else:
            ori.send(f"PRIVMSG #general :@{NICK} status")
            told = await ori.expect("NOTICE", "spark-ori", where=lambda each: "1 unread" in each.params[1])
            assert "I go on when a person says resume" in told.params[1]
