"""The agents: their folders, what they are doing, and what they have left behind."""

import os
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from culture.cli.agents.report import SILENT, STARTING, STOPPED, report
from culture.cli.amounts import counted
from culture.cli.doctor.finding import Finding, error, hint, warning
from culture.cli.doctor.scene import Scene, shown
from culture.clients.shared import ending
from culture.clients.shared.processes import carrying
from culture.config import paths
from culture.protocol.vocabulary import State

_AT_ONCE = 16


def folders(scene: Scene) -> Iterator[Finding]:
    """Where they work."""
    for agent in scene.agents:
        place = agent.directory
        if not place.is_dir():
            yield error(
                f"the folder of {agent.nick} is not there: {shown(place)}",
                "it cannot start",
                f"mkdir -p {shown(place)}, or correct `directory:` in {shown(paths.agents_file())}",
            )
        elif not os.access(place, os.W_OK | os.X_OK, effective_ids=True):
            yield warning(
                f"{agent.nick} may not write to its folder {shown(place)}",
                "it can look at what is there, and change nothing",
                f"chmod u+rwx {shown(place)}",
            )


def states(scene: Scene) -> Iterator[Finding]:
    """What each is doing, as its daemon says, else as its file does."""
    known = {agent.nick: agent.agent for agent in scene.agents}
    names = list(dict.fromkeys([*known, *scene.daemons]))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for found in pool.map(lambda nick: _report(nick, known.get(nick, "?")), names):
            yield from found if isinstance(found, list) else _state(found)
    for nick in sorted(scene.daemons.keys() - known.keys()) if scene.settings is not None else ():
        yield hint(
            f"{nick} runs, and agents.yaml does not name it",
            "it was taken out of the file, or belongs to a team",
            f"`culture stop {nick}` if nobody needs it",
        )


def _report(nick: str, backend: str) -> dict[str, Any] | list[Finding]:
    try:
        return report(nick, backend)
    except sqlite3.Error:
        return []  # told by the check of the databases


def _state(said: dict[str, Any]) -> Iterator[Finding]:
    nick, state, why = said["nick"], said["state"], said.get("why") or ""
    if state in (State.PARKED, State.CRASHED) or (state == STOPPED and said.get("why") not in (None, "paused")):
        yield warning(
            f"{nick} is {state if state != STOPPED else 'parked'}{f': {why}' if why else ''}",
            "it crashed too often, or has spent what it may",
            f"`culture logs {nick}`, then `culture resume {nick}`" if state != STOPPED else f"`culture logs {nick}`",
        )
    elif state == SILENT:
        yield error(f"the daemon of {nick} does not answer", why, f"`culture restart {nick}`")
    elif state == STARTING:
        yield warning(f"{nick} is not ready yet", "its server or its program lets it wait", f"`culture logs {nick}`")
    elif state != STOPPED and not said["connected"]:
        yield warning(
            f"{nick} is not on its server",
            "what is said to it is kept there, and comes later",
            f"`culture logs {nick}`",
        )
    elif state == STOPPED and said["unread"]:
        waiting = counted(said["unread"], "message waits", "messages wait")
        yield hint(f"{nick} does not run, and {waiting} for it", "nobody answers", f"`culture start {nick}`")


def orphans(scene: Scene) -> Iterator[Finding]:
    """Processes that carry the mark of an agent whose daemon is gone."""
    for file in sorted((scene.home / "inbox").glob("*.db")):
        nick = file.stem
        if nick in scene.daemons:
            continue
        try:
            marks = ending.tokens(nick)
        except sqlite3.Error:
            continue
        left = [pid for mark in marks for pid in carrying(mark)]
        if left:
            yield warning(
                f"{counted(len(left), 'process', 'processes')} of {nick} outlived its daemon: "
                f"{', '.join(map(str, left[:10]))}",
                "the daemon was killed; they go on working and spending with nobody to hear of it",
                f"`culture stop {nick}` ends them",
            )
