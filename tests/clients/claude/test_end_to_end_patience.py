"""A person takes longer to answer than the real Claude Code waits for a command in its shell."""

import json
from pathlib import Path

import pytest

from culture.server.ircd import IRCd
from tests.clients.claude.fifo import MakeFifo
from tests.clients.claude.rooms import GENERAL, NICK, working
from tests.clients.patience import SKILL, answers_late
from tests.clients.shared.test_unfinished_work import complete, completed
from tests.support.model import Model
from tests.support.waiting import until

SECONDS = 4.0
"""Claude Code moves a command to its background after so long here; it waits for 120 s unless told otherwise."""


@pytest.mark.requirement("H08")
async def test_the_answer_is_a_prompt_of_its_own_and_no_news_of_a_command(
    ircd: IRCd, home: Path, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person answers when a call that waited would be in the background; the proof `patience` has its own times."""
    monkeypatch.setenv("BASH_DEFAULT_TIMEOUT_MS", f"{1000 * SECONDS:.0f}")
    async with working(ircd, home, ask_bound=1) as (daemon, ori):
        await answers_late(daemon, ori, model, later=SECONDS + 0.5)
        # "I wait for a word" completed nothing, the answer did.
        assert (await complete(ori)).startswith("deploy")
        await ori.sync()
        assert len(completed(ori)) == 1
    assert not any("<task-notification>" in each.prompt for each in model.journal.requests)


def asking(first: str = "", **given: object) -> str:
    """A command that asks, as the model gives it."""
    command = first + f'{SKILL} ask "{GENERAL}" --options yes/no "may I?"'
    return f"[[call Bash {json.dumps({'command': command, **given})}]]"


@pytest.mark.requirement("H08")
async def test_a_call_with_a_shorter_time_of_the_model_s_leaves_the_answer_to_a_prompt(
    ircd: IRCd, home: Path, model: Model, make_fifo: MakeFifo
) -> None:
    """Claude Code moves the command to its background while the turn goes on, long before the bound."""
    fifo = make_fifo()
    async with working(ircd, home) as (daemon, ori):
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} deploy {asking(timeout=1000)} [[bash head -n1 {fifo.path}]]")
        await ori.expect("PRIVMSG", GENERAL, "[QUESTION] may I?")
        await until(lambda: daemon.questions.waiting == 0)
        assert daemon.work.busy
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} yes q1")
        await until(lambda: daemon.inbox.counts()[0] > 0)
        fifo.write("the end")
        await until(lambda: not (daemon.work.busy or daemon.inbox.counts()[0]))
    assert any('answers your question q1, "may I?": ANSWERED' in each.prompt for each in model.journal.requests)


@pytest.mark.requirement("H08")
async def test_a_command_in_the_background_that_asks_between_turns_does_not_wait(
    ircd: IRCd, home: Path, model: Model, make_fifo: MakeFifo
) -> None:
    fifo = make_fifo()
    asks = asking(f"head -n1 {fifo.path}; ", run_in_background=True)
    async with working(ircd, home) as (daemon, ori):
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} deploy {asks} [[say begun]]")
        await ori.expect("PRIVMSG", GENERAL, "begun")
        await until(lambda: not daemon.work.busy)
        fifo.write("go")
        await ori.expect("PRIVMSG", GENERAL, "[QUESTION] may I?")
        await until(lambda: not daemon.questions.waiting)
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} yes q1")
        await until(lambda: any("answers your question q1" in each.prompt for each in model.journal.requests))
