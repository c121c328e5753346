"""One thread of Codex: a turn at a time, and the commands that a turn leaves behind."""

import asyncio
import logging
from secrets import token_hex
from typing import Any

from culture.clients.codex.app_server import AppServer, AppServerError, Params

log = logging.getLogger(__name__)

INTERRUPT_PATIENCE = 4.0
TOOL = "irc"
# The provider of Codex's makers takes a message from outside as what a tool put out; others know only the user.
OWN_PROVIDER = "openai"


class CodexThread:
    """A thread that was begun or taken up."""

    def __init__(self, server: AppServer, opened: Params) -> None:
        self.id = str(opened["thread"]["id"])
        self.model = str(opened.get("model") or "")
        self._provider = opened.get("modelProvider")
        self._server = server
        self.active: str | None = None
        """The turn that is being taken, whoever began it."""
        self._beginning = False
        self._asked = ""
        self._over: dict[str, Params] = {}
        self._news = asyncio.Event()

    def is_asked(self, turn: str) -> bool:
        """Whether this turn that starts is one that was asked for; Codex begins some by itself, such as for a goal."""
        return self._beginning or turn == self._asked

    def notice(self, method: str, params: Params) -> None:
        """Take note of a turn that begins or ends, whoever began it."""
        match method:
            case "turn/started":
                self.active, self._beginning = params["turn"]["id"], False
            case "turn/completed":
                self.active = None
                self._over[params["turn"]["id"]] = params["turn"]
        self._news.set()

    async def ask(self, prompt: str, effort: str, *, outside: bool) -> Params:
        """Put a prompt, from outside or a user's, once nothing else is done, and wait for the end of that turn."""
        given = self._from_outside(prompt) if outside else _own(prompt)
        began = await self._begin("turn/start", {"effort": effort, **given})
        self._asked = began["turn"]["id"]
        return await self._ended(began["turn"]["id"])

    async def compact(self) -> Params:
        """Shorten the context; the turn that does so."""
        await self._begin("thread/compact/start", {})
        while self._beginning:
            await self._change()
        return await self._ended(self.active or next(iter(self._over)))

    async def steer(self, text: str, outside: str = "") -> bool:
        """Put a text of our own, and what others say, into the running turn; False when there is none that takes it."""
        if self.active is None:
            return False
        given = {**(_tagged(outside) if outside else {}), **_own(text)}
        try:
            await self._server.request("turn/steer", {"threadId": self.id, "expectedTurnId": self.active, **given})
        except AppServerError as refusal:
            log.info("Codex takes nothing more into its turn: %s", refusal)
            return False
        return True

    async def interrupt(self) -> None:
        """Break the running turn off; returns when it has ended, or after a while."""
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
        """End the commands of these items that still run; those of earlier turns go on."""
        try:
            running = await self._server.request("thread/backgroundTerminals/list", {"threadId": self.id})
            for each in running.get("data", ()):
                if each["itemId"] in items:
                    named = {"threadId": self.id, "processId": each["processId"]}
                    await self._server.request("thread/backgroundTerminals/terminate", named)
        except AppServerError as refusal:
            log.warning("Codex does not end a command: %s", refusal)

    def _from_outside(self, prompt: str) -> dict[str, Any]:
        if self._provider == OWN_PROVIDER:
            return {"input": [], "toolOutput": {"name": TOOL, "output": prompt}}
        return _tagged(prompt)

    async def _begin(self, method: str, params: Params) -> Params:
        """Begin a turn once it does nothing: what is put while it works would become a part of that work."""
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
    # A name that nobody can guess, so that no text can end its own tag; the same text twice is given twice.
    entry = {"kind": "untrusted", "value": text}
    return {"input": [], "additionalContext": {f"{TOOL}_{token_hex(4)}": entry}}
