"""The real Claude Code, with work in its background: every turn is begun by the daemon, in the place that caused it."""

import json
from pathlib import Path

from culture.server.ircd import IRCd
from tests.clients.claude.fifo import Fifo, MakeFifo
from tests.clients.claude.rooms import GENERAL, NICK, working
from tests.clients.shared.test_daemon import answered, until
from tests.support.model import Model


def in_background(fifo: Fifo) -> str:
    """A command that runs in the background until the test lets it end."""
    given = {"command": f"head -n1 {fifo.path}", "run_in_background": True, "description": "long test"}
    return f"[[call Bash {json.dumps(given)}]]"


async def test_what_runs_in_the_background_is_counted_in_the_place_where_it_was_begun(
    ircd: IRCd, home: Path, model: Model, make_fifo: MakeFifo
) -> None:
    fifo = make_fifo()
    async with working(ircd, home) as (daemon, ori):
        assert daemon.keeper.in_background(GENERAL) == 0
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} test it {in_background(fifo)} [[say begun]]")
        assert await answered(ori, GENERAL) == "begun"
        await until(lambda: not daemon.work.busy)
        assert daemon.keeper.in_background(GENERAL) == 1
        assert daemon.keeper.in_background("spark-ori") == 0
        fifo.write("the end")
        await until(lambda: daemon.keeper.in_background(GENERAL) == 0)
