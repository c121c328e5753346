"""``culture logs``: what a daemon printed."""

import os
import time
from collections import deque
from typing import Annotated, BinaryIO

import typer

from culture.cli import output
from culture.cli.agent_access import open_to_agents
from culture.cli.agents.select_agents import Nick, load, meant, unknown
from culture.cli.output import fail
from culture.config import paths
from culture.protocol.names import fold

STEP = 0.2


@open_to_agents
def logs(
    nick: Nick,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on showing what is added; Ctrl-C ends it.")
    ] = False,
    number: Annotated[int, typer.Option("-n", "--lines", min=0, metavar="N", help="So many of the last lines.")] = 50,
) -> None:
    """Show what the daemon of an agent printed in the background.

    Under systemd it is in the journal: journalctl --user -u culture@<nick>.
    """
    if not nick or "/" in nick:
        fail(f"{nick!r} is no nick")
    nick = meant(nick)
    file = paths.log_file(nick)
    try:
        with file.open("rb") as text:
            for line in deque(text, maxlen=number):
                _show(line)
            if follow:
                _follow(text)
    except FileNotFoundError:
        known = [agent.nick for agent in load().agents]
        if fold(nick) not in map(fold, known):
            unknown(nick, known)
        fail(f"there is no {file}: {nick} was never started in the background here. `culture start {nick}` does that")
    except KeyboardInterrupt:
        pass


def _follow(text: BinaryIO) -> None:
    while True:
        line = text.readline()
        if line:
            _show(line)
        elif os.fstat(text.fileno()).st_size < text.tell():
            # It was too long, and began anew.
            text.seek(0)
        else:
            time.sleep(STEP)


def _show(line: bytes) -> None:
    # An agent writes into it, and quotes what others said.
    typer.echo(output.shown(line.decode("utf-8", "replace")), nl=False)
