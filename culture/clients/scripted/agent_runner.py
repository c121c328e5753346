"""The runner for the scripted agent: starts its process, reads its events."""

import asyncio
import json
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from culture.clients.scripted.playbook import BUILT_IN, NAMED, read
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.queued import QueuedRunner
from culture.clients.shared.sandbox.bubblewrap import inside
from culture.clients.shared.tool_result import tool_result
from culture.clients.shared.turn import COMMANDS, AgentDied, Can, RunnerSetup, Turn
from culture.lib.process.orphans import end_all, tokened
from culture.lib.process.pipes import ended, release, spawn

log = logging.getLogger(__name__)

START_PATIENCE = 30.0
# Seconds for an idle agent to end after its input is closed.
END_PATIENCE = 1.0
# Seconds to read the remaining output after its death, in case another process holds the pipe.
LAST_WORDS_PATIENCE = 0.5


class ScriptedRunner(QueuedRunner):
    """Runs an agent that follows a playbook, in a process of its own."""

    can = frozenset({Can.RESUME, Can.COMPACT, Can.CLEAR, Can.DEEPER})

    def __init__(self, setup: RunnerSetup) -> None:
        super().__init__(setup)
        self._playbook = playbook_of(setup.nick, setup.directory, setup.options)
        self._environment, self._token = tokened(setup.environment)
        self._process: asyncio.subprocess.Process | None = None
        self._listener: asyncio.Task[None] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None
        self._end: asyncio.Future[Turn] | None = None
        self._number = 0
        self._session: str | None = None
        self._deeper = False

    @property
    def session_id(self) -> str | None:
        """Return the id of the present session, to resume it later; None without a session."""
        return self._session

    async def open(self) -> None:
        """Start the scripted agent's process and wait until it is ready.

        ``AgentDied`` if it does not become ready.
        """
        options = ["--playbook", str(self._playbook), "--thinking", self.setup.thinking]
        resume = ["--resume", self.setup.resume] if self.setup.resume else []
        # -P: do not import modules from the folder that the agent works in.
        program = [sys.executable, "-P", "-m", "culture.clients.scripted.agent"]
        command = inside(self.setup.sandbox, [*program, *options, *resume], self._environment)
        self._process = await spawn(command, self.setup.directory, self._environment)
        self._number = 0
        self._ready = asyncio.get_running_loop().create_future()
        self._listener = asyncio.create_task(self._listen(self._process), name=f"lines of {self.setup.nick}")
        self._watcher = asyncio.create_task(self._watch(self._process), name=f"life of {self.setup.nick}")
        try:
            async with asyncio.timeout(START_PATIENCE):
                await self._ready
        except (TimeoutError, AgentDied) as error:
            await self.close()
            raise AgentDied(getattr(error, "code", 1), str(error) or "the agent does not begin") from error

    async def take_turn(self, prompt: str) -> Turn:
        """Send a prompt or a command to the agent, and return the turn when it has ended."""
        self._number += 1
        self._end = asyncio.get_running_loop().create_future()
        if prompt in COMMANDS:
            await self._write({"type": "command", "id": self._number, "name": prompt.removeprefix("/")})
        else:
            await self._write({"type": "prompt", "id": self._number, "text": prompt, "deeper": self._deeper})
            self._deeper = False
        return await self._end

    async def interrupt(self) -> None:
        """Interrupt the running turn of the scripted agent."""
        await self._write({"type": "interrupt", "id": self._number})

    def think_deeper(self) -> None:
        """Mark the next prompt as ``deeper``; playbooks see that in the placeholder ``thinking``."""
        self._deeper = True

    async def close(self) -> None:
        """End the agent's process and all processes that it started."""
        process, self._process = self._process, None
        tasks = [task for task in (self._watcher, self._listener) if task not in (None, asyncio.current_task())]
        self._watcher = self._listener = None
        if process is not None:
            await _leave(process)
        await end_all(self._token, grace=END_PATIENCE)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if process is not None:
            await release(process)

    async def _write(self, request: dict[str, object]) -> None:
        if self._process is None or self._process.stdin is None:
            return
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            await self._process.stdin.drain()
        except ConnectionError:
            # It is dead; the watcher reports that.
            pass

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        try:
            while line := await process.stdout.readline():
                await self._heard(json.loads(line))
        except ValueError as error:
            log.error("%s: malformed line from the agent: %s", self.setup.nick, error)
            process.kill()

    async def _heard(self, event: dict[str, Any]) -> None:
        self.touch()
        match event["type"]:
            case "ready":
                self._session = event["session"]
                if self._ready is not None and not self._ready.done():
                    self._ready.set_result(None)
            case "turn_end":
                self._session = event["session"]
                if self._end is not None and not self._end.done():
                    self._end.set_result(_turn(event))
            case "usage":
                self.used(event["tokens"], event["cost_usd"])
            case "text" | "thinking" | "tool_use" | "tool_result":
                await self._pass_on(_block(event))

    async def _pass_on(self, block: dict[str, Any]) -> None:
        try:
            await self.emit([block], self.setup.model or "scripted")
        except Exception:
            log.exception("%s: cannot pass on the agent's output", self.setup.nick)

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        code = await ended(process)
        if self._listener is not None:
            await asyncio.wait([self._listener], timeout=LAST_WORDS_PATIENCE)
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(AgentDied(code))
        await self.died(code)


async def _leave(process: asyncio.subprocess.Process) -> None:
    """Close the input of the agent's process, and wait a few seconds for its exit."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(END_PATIENCE):
            await ended(process)
    except TimeoutError:
        pass


def playbook_of(nick: str, directory: Path, options: Mapping[str, object]) -> Path:
    """Return the path of an agent's playbook; ``WrongConfiguration`` if it is missing or wrong.

    ``directory``: the agent's folder; ``options``: its settings. Without the setting ``playbook`` it is the built-in
    one.
    """
    named = options.get("playbook")
    if named is None:
        return BUILT_IN
    if not isinstance(named, str):
        raise WrongConfiguration(f"{nick}: playbook must be a path (put it in quotes)")
    path = directory / Path(named).expanduser()
    path = NAMED[named] if named in NAMED and not path.exists() else path
    read(path)
    return path


def _block(event: dict[str, Any]) -> dict[str, Any]:
    if event["type"] == "thinking":
        return {"type": "thinking", "thinking": event["text"]}
    if event["type"] == "tool_result":
        return tool_result(event["id"], event["output"] or event["errors"], failed=bool(event["code"]))
    return event


def _turn(event: dict[str, Any]) -> Turn:
    usage = event["usage"]
    return Turn(
        text=event.get("text", ""),
        error=event.get("error", ""),
        full=event.get("full", False),
        interrupted=event.get("interrupted", False),
        tools=tuple(event.get("tools", ())),
        tokens=usage.get("tokens", 0),
        cost_usd=usage.get("cost_usd", 0.0),
        context_pct=usage.get("context_pct"),
        compacted=event.get("compacted", False),
    )
