"""Stops what runs in a home folder, and checks that nothing is left.

The order matters: orchestrators first, since they would restart their members; then agents, web pages, servers. Every
stopped process was the leader of a session, so afterwards all processes of those sessions that still live are
leftovers, and are killed.
"""

import os
import signal
import subprocess
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import typer

from culture.cli.agents.lifecycle import AT_ONCE
from culture.cli.agents.select_agents import configured_agents
from culture.cli.humanize import counted
from culture.cli.server import pid_file
from culture.cli.web import process as webpage
from culture.clients.shared import ending
from culture.clients.shared import pidfile as daemons
from culture.clients.shared.ending import Ended
from culture.config import paths
from culture.lib.files import note_of_holder
from culture.lib.process.children import end_child
from culture.lib.process.handle import is_gone, pinned
from culture.lib.process.orphans import carrying, end_sessions

VIEW_GRACE = 15.0
"""Seconds that a `culture up` may take to notice that everything has stopped."""

EARLY_GRACE = 10.0
"""Seconds that a process which is not ready yet may take to end."""
_FORCE = 5.0


class Shutdown:
    """Stops processes one after the other; lists what was stopped and what still runs."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.left: list[str] = []
        self._leaders: set[int] = set()
        self._teams: dict[str, int] = {}

    def early(self, launched: "Mapping[str, subprocess.Popen[bytes]]", server: str) -> None:
        """Stop those of the child processes ``launched`` that have no pid file yet.

        ``launched``: processes by a name for people. ``server``: name of the server that they belong to.
        """
        self._leaders |= {process.pid for process in launched.values()}
        shown = holders(server)
        hidden = {what: each for what, each in launched.items() if each.pid not in shown and each.poll() is None}
        for child in hidden.values():
            child.terminate()
        for what, child in hidden.items():
            self._went(what, end_child(child, EARLY_GRACE, _FORCE), f"pid {child.pid}")

    def teams(self) -> None:
        """Stop the orchestrators of all teams of this home folder, but not the teams' members."""
        if not (paths.home() / "team").is_dir():
            return
        from culture.cli.team import select_team, up  # only needed if there are teams

        for slug in select_team.team_slugs():
            pid = select_team.orchestrator_pid(slug)
            if pid is None:
                continue
            self._leaders.add(pid)
            try:
                up.end(slug)
            except typer.Exit:
                pass  # the reason was printed; everything else is still stopped
            if select_team.orchestrator_pid(slug) is None:
                self._say(f"The team {slug} has stopped.")
            else:
                self._teams[slug] = pid

    def agents(self, nicks: Iterable[str]) -> None:
        """Stop agents and all processes that they started, also those that ended agents left behind."""
        names, running = list(nicks), daemons.all_running()
        self._leaders |= {note.pid for nick, note in running.items() if nick in names}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for nick, (how, left) in zip(names, pool.map(ending.end_now, names), strict=True):
                self._agent(nick, how, left)

    def page(self, server: str) -> None:
        """Stop the web page of a server, if it runs."""
        note = webpage.running(server)
        if note is None:
            return
        self._leaders.add(note.pid)
        self._went(f"The web page of {server}", webpage.end(server) is not False, f"pid {note.pid}")

    def server(self, name: str) -> None:
        """Stop the server with this name, if it runs."""
        note = pid_file.running(name)
        if note is None:
            return
        self._leaders.add(note.pid)
        self._went(name, pid_file.end(name) is not False, f"pid {note.pid}; see {paths.log_file(name)}")

    def look(self) -> None:
        """Find and kill processes that the stopped processes left behind in their sessions."""
        found, still = end_sessions(self._leaders)
        for orphan in found:
            self._say(f"Ended what was left behind: {orphan.command} (pid {orphan.pid}).")
        self.left += [f"{process.command} (pid {process.pid}); `kill -9 {process.pid}`" for process in still]
        for slug, pid in self._teams.items():
            from culture.cli.team import select_team

            if select_team.orchestrator_pid(slug) == pid:
                self.left.append(f"the team {slug} (pid {pid}); `kill {pid}` ends its orchestrator")

    def view(self) -> None:
        """Wait until the `culture up` in another terminal exits; send SIGTERM if it takes too long."""
        pid = viewer()
        if pid is None or pid == os.getpid():
            return
        with pinned(pid) as process:
            if process is not None and not is_gone(process, VIEW_GRACE) and viewer() == pid:
                signal.pidfd_send_signal(process, signal.SIGTERM)
                self._went("`culture up`", is_gone(process, VIEW_GRACE), f"pid {pid}")

    def _agent(self, nick: str, how: Ended, left: int) -> None:
        if how is Ended.STAYS:
            self.left.append(f"{nick} {how.value}; see {paths.log_file(nick)}")
            return
        if how is not Ended.NOT_THERE:
            self._say(f"{nick} {how.value}.")
        if left:
            self._say(f"Ended {counted(left, 'process', 'processes')} that {nick} had left behind.")
        for token in ending.tokens(nick):
            self.left += [f"pid {pid}, started by {nick}" for pid in carrying(token)]

    def _went(self, what: str, gone: bool, more: str) -> None:
        if gone:
            self._say(f"{what} has stopped.")
        else:
            self.left.append(f"{what} ({more})")

    def _say(self, text: str) -> None:
        self.ended.append(text)
        say(text)


def say(text: str, *, err: bool = False) -> None:
    """Print a text; do nothing if the terminal is closed.

    ``err``: print on stderr.
    """
    with suppress(OSError):
        typer.echo(text, err=err)


def holders(server: str) -> set[int]:
    """Return the pids of a server, its web page, and all daemons, as far as they run."""
    notes = (pid_file.running(server), webpage.running(server), *daemons.all_running().values())
    return {note.pid for note in notes if note}


def everybody() -> list[str]:
    """Return the nicks of all agents that run or are in agents.yaml."""
    return list(dict.fromkeys([*daemons.all_running(), *configured_agents()]))


def view_file() -> Path:
    """Return the path of the file that `culture up` locks while it prints activity."""
    return paths.home() / "run" / "up.view"


def viewer() -> int | None:
    """Return the pid of the `culture up` that prints activity in a terminal, or None."""
    text = note_of_holder(view_file())
    return int(text) if text and text.strip().isdecimal() else None
