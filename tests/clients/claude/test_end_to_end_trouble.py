"""The real Claude Code is killed, or its model fails: people are told, and nothing is lost."""

import os
import signal
from pathlib import Path

import pytest

from culture.lib.process.orphans import carrying
from culture.server.ircd import IRCd
from tests.clients.claude.fifo import MakeFifo
from tests.clients.claude.rooms import GENERAL, NICK, configured, program, spoken, working
from tests.clients.shared.test_daemon import answered
from tests.clients.shared.test_restarts import is_alive, token
from tests.support.agents import process
from tests.support.client import registered
from tests.support.model import Model
from tests.support.waiting import until


@pytest.mark.fault("E1")
@pytest.mark.requirement("G07", "G08", "G10", "G19")
async def test_killed_in_a_turn_it_goes_on_in_its_session_and_answers_once(
    ircd: IRCd, home: Path, model: Model
) -> None:
    async with working(ircd, home) as (daemon, ori):
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} remember the marmot [[say I do]]")
        assert await answered(ori, GENERAL) == "I do"
        session = daemon.notes.session
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} work [[wait GO]] [[say worked]]")
        await model.journal.arrival("work")
        os.kill(program(daemon.notes.token), signal.SIGKILL)
        alert = await ori.expect("PRIVMSG", "#alerts", where=lambda each: each.params[1].startswith("[ERROR]"))
        assert alert.params[1] == f"[ERROR] {NICK} crashed: process exited with code -9"
        told = await ori.expect("NOTICE", GENERAL)
        assert told.params[1] == "[ERROR] my process exited with code -9; I start again in 0.05 s. Nothing is lost."
        model.release("GO")
        assert await answered(ori, GENERAL) == "worked"
        await until(lambda: not daemon.work.busy)
        await ori.sync()
        assert spoken(ori) == ["I do", "worked"]
        assert daemon.inbox.counts() == (0, 0)
        assert daemon.notes.session == session is not None
    last = model.journal.requests[-1]
    assert "repeated: it may have reached you before" in last.prompt
    assert last.prompt.endswith("(your process had ended and was started again, in the same session)")
    assert "remember the marmot" in last.everything


@pytest.mark.fault("E6", "E7")
@pytest.mark.requirement("F01")
async def test_with_its_daemon_killed_it_answers_after_the_next_start_and_its_shell_is_ended(
    ircd: IRCd, home: Path, model: Model, make_fifo: MakeFifo
) -> None:
    configured(ircd, home)
    fifo = make_fifo()
    once = f'mkdir begun && echo $$ > {fifo.path} && exec python3 -c "import time; time.sleep(600)"'
    async with registered(ircd.port, "spark-ori", "message-tags echo-message") as ori:
        await ori.join(GENERAL)
        async with process(NICK, home) as daemon:
            await ori.expect("JOIN", GENERAL)
            ori.send(f"PRIVMSG {GENERAL} :@{NICK} remember the marmot [[say I do]]")
            assert await answered(ori, GENERAL) == "I do"
            ori.send(f"PRIVMSG {GENERAL} :@{NICK} work [[bash {once}]] [[say worked]]")
            shell = int(await fifo.read())
            before = token()
            # In the moment in which a shell becomes another program it carries nothing.
            await until(lambda: shell in carrying(before))
            await daemon.kill()  # the watchdog may end the shell from now on
            await daemon.start()
            assert await answered(ori, GENERAL) == "worked"
            assert not is_alive(shell)
            assert carrying(before) == []
            await ori.sync()
            assert spoken(ori) == ["I do", "worked"]
            assert await daemon.stop() == 0
    last = model.journal.requests[-1]
    assert "repeated: it may have reached you before" in last.prompt
    assert "remember the marmot" in last.everything


async def test_an_error_of_the_model_is_told_as_one_and_never_spoken(ircd: IRCd, home: Path, model: Model) -> None:
    async with working(ircd, home) as (daemon, ori):
        for number, (status, words) in enumerate([(529, "overloaded"), (400, "no credit left")], 1):
            ori.send(f"PRIVMSG {GENERAL} :@{NICK} go [[say on my way]] [[bash true]] [[err {status} {words}]]")
            first = await ori.expect("NOTICE", GENERAL)
            assert first.params[1].startswith("[ERROR] ") and first.params[1].endswith("; I try once more.")
            assert words in first.params[1]
            second = await ori.expect("NOTICE", GENERAL)
            assert second.params[1].startswith("[ERROR] I gave up on spark-ori's message "), words
            await until(lambda: not daemon.work.busy)
            ori.send(f"PRIVMSG {GENERAL} :@{NICK} and now? [[say better]]")
            assert await answered(ori, GENERAL) == "better", words
            await ori.sync()
            assert spoken(ori) == ["better"] * number, words
            assert daemon.inbox.counts() == (0, 0), words
