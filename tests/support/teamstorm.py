"""A team whose orchestrator, members and server are killed again and again, and what must be left of its work."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from culture.clients.shared import pidfile
from culture.config import paths
from culture.orchestrator.journal.state import TaskStage, TeamState
from culture.orchestrator.journal.store import read_state
from tests.support.client import registered
from tests.support.clock import sleep
from tests.support.mesh import Mesh
from tests.support.teamscripts import MEMBERS, SERVER, SLUG, STANDUP
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
CAPS = "message-tags echo-message agentirc.dev/receipts"
STILL = 60.0
_people = count(1)


@dataclass
class TeamStorm:
    """One team on one server, from the first task to the last."""

    mesh: Mesh
    folder: Path
    project: Path
    tasks: int
    chance: random.Random
    kills: Counter[str] = field(default_factory=Counter)
    most_members: int = 0
    asked: int = 0
    """How often the person asked for a task that did not move."""
    _orchestrator: asyncio.subprocess.Process | None = None
    _ended: bool = False

    @property
    def state(self) -> TeamState:
        """What the team knows."""
        state = read_state(paths.team_dir(SLUG))
        self.most_members = max(self.most_members, len(state.members))
        return state

    @property
    def is_over(self) -> bool:
        """Whether every task has been given out, and has come to its end."""
        state = self.state
        ends = (
            each.stage is TaskStage.WAITING or (each.cleaned and not state.team_of(each.id)) for each in _all(state)
        )
        return len(state.tasks) == self.tasks and all(ends)

    async def rage(self, seconds: float, patience: float) -> float:
        """Give out all tasks while everything is killed for so long; how long it then took until all was over."""
        async with asyncio.TaskGroup() as group:
            keeping = group.create_task(self._keep_up())
            working = group.create_task(self._give_out(seconds))
            asking = group.create_task(self._ask())
            await self._kill(seconds)
            began = time.monotonic()
            async with asyncio.timeout(patience):
                await working
                while not self.is_over:
                    await sleep(0.5)
            self._ended = True
            keeping.cancel()
            asking.cancel()
        return time.monotonic() - began

    async def end(self) -> None:
        """As a person does: `culture team down`."""
        await _culture("team", "down", "--team", SLUG)

    async def stop(self) -> None:
        """Whatever has become of the test: nothing of it stays."""
        self._ended = True
        for pid in self.left():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def left(self) -> list[int]:
        """The processes that belong to this team."""
        home = f"CULTURE_HOME={paths.home()}".encode()
        return [pid for pid in _processes() if home in _environment(pid)]

    async def _keep_up(self) -> None:
        """The orchestrator is started again, as systemd would."""
        while not self._ended:
            with (paths.home() / "up.log").open("ab") as log:
                self._orchestrator = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "culture", "team", "up", "--team", SLUG),
                    cwd=ROOT,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            await self._orchestrator.wait()
            await sleep(self.chance.uniform(0, 1))

    # The person

    async def _give_out(self, seconds: float) -> None:
        """A task whenever there are hands for it, and not all at once."""
        began = time.monotonic()
        for number in range(1, self.tasks + 1):
            earliest = began + 0.8 * seconds * (number - 1) / self.tasks
            while time.monotonic() < earliest or not self._has_hands():
                await sleep(0.2)
            await self._say(STANDUP, f"TASK: number {number}")
            while len(self.state.tasks) < number:
                await sleep(0.2)

    def _has_hands(self) -> bool:
        """Now and then somebody has to wait for a worker until another leaves."""
        state = self.state
        return state.em is not None and 1 + 2 * len(state.live_tasks()) < MEMBERS

    async def _ask(self) -> None:
        """Where nothing moves for a minute, the person asks how it stands."""
        seen: dict[str, tuple[object, float]] = {}
        while True:
            state, ledger, now = self.state, self.ledger(), time.monotonic()
            for task in state.live_tasks():
                names = tuple(member.name for member in state.team_of(task.id))
                sign = (task, names, sum(line.startswith(f"{task.id} ") for line in ledger))
                known, since = seen.get(task.id, (None, now))
                seen[task.id] = (sign, since if known == sign else now)
                if known == sign and task.stage is not TaskStage.WAITING and now > since + STILL:
                    self.asked += 1
                    seen[task.id] = (sign, now)
                    await self._say(task.channel, f"How does it stand? I have asked {self.asked} times.")
            await sleep(1)

    async def _say(self, channel: str, text: str) -> None:
        """Say it once: again only if the server has not kept it."""
        while True:
            with suppress(OSError, EOFError, TimeoutError):
                async with registered(self.mesh.members[SERVER].port, f"spark-ori{next(_people)}", CAPS) as client:
                    if self._is_kept(channel, text):
                        return
                    await client.join(channel)
                    client.send(f"PRIVMSG {channel} :{text}")
                    async with asyncio.timeout(PATIENCE):
                        await client.expect(
                            "TAGMSG", where=lambda line: line.tags.get("agentirc.dev/receipt") == "stored"
                        )
                    return
            await sleep(0.2)

    def _is_kept(self, channel: str, text: str) -> bool:
        return any(each.text == text for each in self.mesh.history(SERVER, channel))

    # Kills

    async def _kill(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            await sleep(self.chance.uniform(1, 7))
            what = self.chance.choices(("orchestrators", "members", "servers"), (3, 5, 2))[0]
            if what == "orchestrators":
                self._kill_process(self._orchestrator.pid if self._orchestrator else None, what)
            elif what == "members":
                there = sorted(note.pid for note in pidfile.all_running().values())
                self._kill_process(self.chance.choice(there) if there else None, what)
            else:
                self.kills[what] += 1
                await self.mesh.kill(SERVER)
                await sleep(self.chance.uniform(0, 1.5))
                await self.mesh.start(SERVER)

    def _kill_process(self, pid: int | None, what: str) -> None:
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.kills[what] += 1

    # Afterwards

    def lost(self) -> list[str]:
        """What members wrote or committed, and is neither under a ref nor in a worktree any more."""
        kept = set(_git(self.project, "rev-list", "--objects", "--all", "--format=").split())
        files = [str(file) for file in (self.project / ".worktrees").glob("agent-task-*/*") if file.is_file()]
        kept |= set(_git(self.project, "hash-object", *files).split()) if files else set()
        return [line for line in self.ledger() if line.split()[1] not in kept]

    def ledger(self) -> list[str]:
        """Each task and object that a member noted."""
        return (self.folder / "ledger").read_text().splitlines()

    def done_twice(self) -> list[str]:
        """Tasks that were taken twice, or whose end was told or whose work was committed more than once."""
        state, told = self.state, [each.text for each in self.mesh.history(SERVER, STANDUP)]
        texts = Counter(each.text for each in _all(state))
        found = [text for text, times in texts.items() if times > 1]
        for task in _all(state):
            ends = sum(text.startswith((f"[{task.id}] done:", f"[{task.id}] failed:")) for text in told)
            log = _git(self.project, "log", "--format=%s", f"main..task/{task.id}").splitlines()
            if ends > 1 or log.count(f"work on {task.id}") > 1:
                found.append(task.id)
        return found


def _all(state: TeamState) -> list[Any]:
    return list(state.tasks.values())


def _git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True, timeout=60).stdout


async def _culture(*words: str) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "culture", *words, cwd=ROOT)
    async with asyncio.timeout(120):
        assert await process.wait() == 0


def _processes() -> Iterator[int]:
    return (
        int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal() and int(each.name) != os.getpid()
    )


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
