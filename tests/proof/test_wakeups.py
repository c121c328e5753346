"""``make proof NAME=wakeups``: a cron of the real Claude Code falls due twice while the agent is paused."""

import asyncio
import json
import os
from pathlib import Path

from culture.clients.shared.queued import QueuedRunner
from culture.clients.shared.turn import News
from culture.server.ircd import IRCd
from tests.clients import surroundings
from tests.clients.claude import conftest
from tests.clients.claude.rooms import GENERAL, NICK, working
from tests.clients.patience import moment
from tests.clients.shared.test_daemon import answered
from tests.support.model import Model

FIRINGS = 2
EVERY = 60.0
"""Claude Code knows no shorter time than a minute, and may add some seconds of its own."""
FIGURES = os.environ.get("PROOF_FIGURES")

model, ircd = surroundings.model, surroundings.ircd
environment, home = conftest.environment, conftest.home


async def test_a_cron_that_falls_due_while_paused_is_one_prompt_after_resume(
    ircd: IRCd, home: Path, model: Model
) -> None:
    async with working(ircd, home) as (daemon, ori):
        runner, firings = daemon.keeper.runner, list[News]()
        assert isinstance(runner, QueuedRunner) and runner.on_news is not None
        keep = runner.on_news

        def count(news: News) -> None:
            firings.append(news)
            keep(news)

        runner.on_news = count
        given = json.dumps({"cron": "* * * * *", "prompt": "look at the build", "recurring": True})
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} watch it [[call CronCreate {given}]] [[say planned]]")
        assert await answered(ori, GENERAL) == "planned"
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} pause")
        await moment(lambda: daemon.notes.paused)
        requests = len(model.journal.requests)
        await moment(lambda: len(firings) >= FIRINGS, (FIRINGS + 1) * EVERY)
        assert daemon.inbox.counts() == (1, 0)
        while_paused = len(model.journal.requests) - requests
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} resume")
        assert await answered(ori, GENERAL) == "ok"
        await moment(lambda: not daemon.work.busy)
        prompt = model.journal.requests[-1].prompt
    assert while_paused == 0
    assert prompt.startswith("[SELF] the time has come for which you had planned this: look at the build\n")
    assert f"(of something you began in {GENERAL}; " in prompt
    if FIGURES:
        figures = {"firings_while_paused": len(firings), "requests_while_paused": while_paused, "prompts": 1}
        await asyncio.to_thread(Path(FIGURES).write_text, json.dumps(figures))
