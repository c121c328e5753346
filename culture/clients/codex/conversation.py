"""One thread of Codex: one turn at a time, interrupts, and background commands."""

import asyncio
import logging
from secrets import token_hex
from typing import Any

from culture.clients.codex.app_server import AppServer, AppServerError, Params

log = logging.getLogger(__name__)

INTERRUPT_PATIENCE = 4.0
TOOL = "irc"
# OpenAI's own provider accepts outside messages as tool output; others only user messages.
OWN_PROVIDER = "openai"


class CodexThread:
    """A started or resumed thread of Codex: its turns, one at a time."""

    def __init__(self, server: AppServer, opened: Params) -> None:
        self.id = str(opened["thread"]["id"])
        self.model = str(opened.get("model") or "")
        self._provider = opened.get("modelProvider")
        self._server = server
        self.active: str | None = None
        """Id of the running turn, whether ours or Codex's own."""
        self._beginning = False
        self._asked = ""
        self._over: dict[str, Params] = {}
        self._news = asyncio.Event()

    def is_asked(self, turn: str) -> bool:
        """Return whether culture sent the turn's prompt; Codex begins some turns by itself."""
        return self._beginning or turn == self._asked

    def notice(self, method: str, params: Params) -> None:
        """Record the start or the end of a turn, from a notification of the app server."""
        match method:
            case "turn/started":
                self.active, self._beginning = params["turn"]["id"], False
            case "turn/completed":
                self.active = None
                self._over[params["turn"]["id"]] = params["turn"]
        self._news.set()

    async def ask(self, prompt: str, effort: str, *, outside: bool) -> Params:
        """Send a prompt once the thread is idle, and return the turn when it has ended.

        ``effort``: the reasoning effort; ``outside``: the prompt has text from IRC, and is sent marked as such.
        """
        given = self._from_outside(prompt) if outside else _own(prompt)
        began = await self._begin("turn/start", {"effort": effort, **given})
        self._asked = began["turn"]["id"]
        return await self._ended(began["turn"]["id"])

    async def compact(self) -> Params:
        """Compact the thread's context; returns the turn that did so, when it has ended."""
        await self._begin("thread/compact/start", {})
        while self._beginning:
            await self._change()
        return await self._ended(self.active or next(iter(self._over)))

    async def steer(self, text: str, outside: str = "") -> bool:
        """Add a text to the running turn; return False if no turn runs, or Codex refuses.

        ``text``: from culture; ``outside``: from other people, sent marked as such.
        """
        if self.active is None:
            return False
        given = {**(_tagged(outside) if outside else {}), **_own(text)}
        try:
            await self._server.request("turn/steer", {"threadId": self.id, "expectedTurnId": self.active, **given})
        except AppServerError as refusal:
            log.info("Codex cannot add to the running turn: %s", refusal)
            return False
        return True

    async def interrupt(self) -> None:
        """Interrupt the running turn; returns when the turn has ended, or after a timeout."""
        try:
            async with asyncio.timeout(INTERRUPT_PATIENCE):
                while self._beginning:
                    await self._change()
                if (turn := self.active) is None:
                    return
                await self._server.request("turn/interrupt", {"threadId": self.id, "turnId": turn})
                while self.active == turn:
                    await self._change()
        except (AppServerError, TimeoutError) as error:
            log.warning("Codex cannot be interrupted: %s", error)

    async def end_commands(self, items: set[str]) -> None:
        """Terminate the commands in the background that these items started."""
        try:
            running = await self._server.request("thread/backgroundTerminals/list", {"threadId": self.id})
            for each in running.get("data", ()):
                if each["itemId"] in items:
                    named = {"threadId": self.id, "processId": each["processId"]}
                    await self._server.request("thread/backgroundTerminals/terminate", named)
        except AppServerError as refusal:
            log.warning("Codex cannot terminate a command: %s", refusal)

    def _from_outside(self, prompt: str) -> dict[str, Any]:
        if self._provider == OWN_PROVIDER:
            return {"input": [], "toolOutput": {"name": TOOL, "output": prompt}}
        return _tagged(prompt)

    async def _begin(self, method: str, params: Params) -> Params:
        """Start a turn once the thread is idle, and return the app server's response.

        Input that is sent while a turn runs would join that turn.
        """
        while self.active is not None:
            await self._change()
        self._over.clear()
        self._beginning = True
        try:
            return await self._server.request(method, {"threadId": self.id, **params})
        except BaseException:
            self._beginning = False
            self._news.set()
            raise

    async def _ended(self, turn: str) -> Params:
        while turn not in self._over:
            await self._change()
        return self._over[turn]

    async def _change(self) -> None:
        self._news.clear()
        await self._news.wait()


def _own(text: str) -> Params:
    return {"input": [{"type": "text", "text": text}]}


def _tagged(text: str) -> Params:
    # A random name, so that no text can close its own tag; the same text twice is sent twice.
    entry = {"kind": "untrusted", "value": text}
    return {"input": [], "additionalContext": {f"{TOOL}_{token_hex(4)}": entry}}
