"""The real Claude Code is stopped when its budget is spent, also in the middle of a turn."""

import time
from pathlib import Path

import pytest

from culture.protocol.vocabulary import AgentState
from culture.server.ircd import IRCd
from tests.clients.claude.rooms import GENERAL, NICK, spoken, working
from tests.support.model import Model
from tests.support.waiting import until


@pytest.mark.fault("E31")
async def test_a_budget_that_is_spent_within_a_turn_ends_it_after_the_running_call(
    ircd: IRCd, home: Path, model: Model
) -> None:
    async with working(ircd, home, budget={"tokens_per_day": 5000}) as (daemon, ori):
        steps = " ".join(f"[[usage 2000 100 0 0]] [[bash echo {number} >> done]]" for number in range(8))
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} work {steps} [[say all done]]")
        parked = await ori.expect("NOTICE", GENERAL, where=lambda each: "I am parked" in each.params[1])
        assert "5,000 tokens a day are used" in parked.params[1]
        await until(lambda: daemon.presence.state is AgentState.PARKED)
        ran = (home / "work" / "done").read_text().split()
        assert 2 <= len(ran) < 8
        assert spoken(ori) == []
        calls = len(model.journal.requests)
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} once more [[say hello]]")
        await ori.expect("NOTICE", "spark-ori", where=lambda each: "the budget is spent" in each.params[1])
        assert len(model.journal.requests) == calls
        assert daemon.inbox.counts() == (2, 0)


def windows(short: float, long: float, status: str = "allowed") -> dict[str, str]:
    """What the provider tells of a subscription with every answer."""
    now = int(time.time())
    found = {"status": status, "representative-claim": "five_hour", "reset": str(now + 3600)}
    for name, used, ends in (("5h", short, now + 3600), ("7d", long, now + 86400)):
        found |= {f"{name}-utilization": str(used), f"{name}-reset": str(ends), f"{name}-status": "allowed"}
    return {f"anthropic-ratelimit-unified-{name}": value for name, value in found.items()}


@pytest.mark.fault("E32")
async def test_with_a_subscription_it_goes_by_its_windows_and_not_by_cents(
    ircd: IRCd, home: Path, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real program, logged in as a subscriber: notional dollars park nobody, the share of a window does."""
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "dummy")
    async with working(ircd, home, budget={"usd_per_day": 0.001, "window_pct": 50}) as (daemon, ori):
        for used, word in ((0.1, "one"), (0.2, "two")):
            model.headers = windows(0.05, used)
            ori.send(f"PRIVMSG {GENERAL} :@{NICK} [[usage 2000 100 0 0]] [[say {word}]]")
            await ori.expect("PRIVMSG", GENERAL, where=lambda each, word=word: each.params[1] == word)  # type: ignore[misc]
        await until(lambda: not daemon.work.busy)
        status = await daemon.service.status()
        assert status["subscription"] is True and float(str(status["cost_usd_today"])) > 0.001
        assert [(each.name, each.used) for each in daemon.purse.windows] == [("five_hour", 0.05), ("seven_day", 0.2)]
        model.headers = windows(0.51, 0.2)
        steps = " ".join(f"[[bash echo {number} >> done]]" for number in range(8))
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} work {steps} [[say all done]]")
        parked = await ori.expect("NOTICE", GENERAL, where=lambda each: "I am parked" in each.params[1])
        assert "51 of 50 percent of the five hour window are used; it begins anew at " in parked.params[1]
        await until(lambda: daemon.presence.state is AgentState.PARKED)
        assert spoken(ori) == ["one", "two"]
        assert len((home / "work" / "done").read_text().split()) < 8


@pytest.mark.fault("E32")
async def test_with_a_key_it_goes_by_cents(ircd: IRCd, home: Path, model: Model) -> None:
    model.headers = windows(0.99, 0.99)
    async with working(ircd, home, budget={"usd_per_day": 0.001}) as (daemon, ori):
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} [[usage 2000 100 0 0]] [[say hello]]")
        parked = await ori.expect("NOTICE", GENERAL, where=lambda each: "I am parked" in each.params[1])
        assert "0.001 dollars a day are used" in parked.params[1]
        assert not daemon.purse.is_subscription


@pytest.mark.fault("E31")
async def test_dollars_are_counted_with_each_answer_of_the_model(ircd: IRCd, home: Path, model: Model) -> None:
    """Claude Code tells them only when the turn is over: until then they follow from tokens and prices."""
    async with working(ircd, home, budget={"usd_per_day": 0.05}) as (daemon, ori):
        steps = "\n".join(f"[[usage 3000 200 0 0]] [[bash echo {number} >> done]]" for number in range(30))
        (home / "steps").write_text(steps)
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} work [[script {home}/steps]] [[say all done]]")
        first = await daemon.service.usage("0 0.000000", 30.0)
        assert daemon.work.busy and 0 < first["cost_usd_ever"] < 0.05 and first["tokens_ever"] >= 3000
        assert (await daemon.service.status())["tokens_today"] == first["tokens_ever"]
        parked = await ori.expect("NOTICE", GENERAL, where=lambda each: "I am parked" in each.params[1])
        assert "0.05 dollars a day are used" in parked.params[1]
        await until(lambda: daemon.presence.state is AgentState.PARKED)
        assert 2 <= len((home / "work" / "done").read_text().split()) < 15
        assert 0.05 <= (await daemon.service.usage(None, None))["cost_usd_ever"] < 0.1
