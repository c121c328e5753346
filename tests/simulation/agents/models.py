"""Doubles of the model and of the supervisor's model: they take virtual time and decide by their agent's chance.

Everything around them is real: the daemon feeds prompts, takes what is said and used, passes on questions through its
own socket protocol, and breaks turns off.
"""

import asyncio
import random
import zlib
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from culture.clients.shared.closing_text import NO_REPLY
from culture.clients.shared.desk import RequestFailed
from culture.clients.shared.queued import QueuedRunner
from culture.clients.shared.supervisor import Supervisor, SupervisorSetup
from culture.clients.shared.turn import COMMANDS, AgentDied, Can, RunnerSetup, Turn
from tests.simulation.agents.ledger import Asked, Given
from tests.simulation.invariants import Violation
from tests.support.in_process import InProcessServer

if TYPE_CHECKING:
    from tests.simulation.agents.daemons import SimAgent

FAILURE = "the simulated provider is overloaded"
"""Why a turn fails that is meant to."""
CRASH = 70
"""The exit code of a program that is meant to die."""
_MOST_OVER = 2  # steps that a turn may take after its budget is gone, before it is broken off
_T = TypeVar("_T")


@dataclass
class Habits:
    """How often a model does what beside its work, as parts of its turns."""

    step: tuple[float, float] = (1.0, 25.0)
    """The shortest and the longest seconds of one step of a turn."""
    say: float = 0.15
    choice: float = 0.08
    open: float = 0.05
    leave: float = 0.06
    call: float = 0.15
    """Another agent is mentioned in the closing text."""
    reply: float = 0.85
    """An agent is answered with a mention, which may go on for ever."""
    fail: float = 0.03
    die: float = 0.03
    hang: float = 0.01
    silent: float = 0.03
    """The turn ends with ``[no reply]``."""

    def calm(self) -> None:
        """Do nothing but answer."""
        self.say = self.choice = self.open = self.leave = self.call = self.reply = 0.0
        self.fail = self.die = self.hang = self.silent = 0.0


class BrokenOff(Exception):
    """The daemon has interrupted the turn."""


class SimModel(QueuedRunner):
    """A model behind the contract of a backend."""

    can = frozenset({Can.RESUME})

    def __init__(self, setup: RunnerSetup, agent: "SimAgent", session: str | None) -> None:
        super().__init__(setup)
        self._agent, self._chance = agent, agent.chance
        self._session = session or f"session-{agent.chance.randrange(10**9)}"
        self._stop = asyncio.Event()
        self._over = 0

    @property
    def session_id(self) -> str | None:
        return self._session

    async def open(self) -> None:
        await asyncio.sleep(self._chance.uniform(0.1, 2.0))

    async def close(self) -> None:
        await asyncio.sleep(self._chance.uniform(0.01, 0.2))

    async def interrupt(self) -> None:
        self._stop.set()

    async def take_turn(self, prompt: str) -> Turn:
        if prompt in COMMANDS:
            return Turn(compacted=True)
        self._stop.clear()
        self._over = 0
        agent = self._agent
        agent.check_budget()
        given = agent.ledger.give(agent.nick, agent.lives, agent.world.now, prompt)
        agent.world.note("prompt", agent.nick, zlib.crc32(prompt.encode()))
        try:
            turn = await self._take(given)
        except BrokenOff:
            given.ended = "interrupted"
            return Turn(interrupted=True, tokens=given.tokens)
        except AgentDied:
            given.ended = "died"
            raise
        given.ended = "failed" if turn.error else "silent" if turn.text == NO_REPLY else "done"
        return turn

    async def _take(self, given: Given) -> Turn:
        chance, habits = self._chance, self._agent.habits
        for _ in range(chance.choice((1, 1, 2, 3))):
            await self._step(given, chance.random() < 0.5 and not any(part.chain for part in given.parts))
        if chance.random() < habits.die:
            raise AgentDied(CRASH)
        if chance.random() < habits.fail:
            return Turn(error=FAILURE, tokens=given.tokens)
        if chance.random() < habits.hang:
            await self._unless_stopped(asyncio.Event().wait())
        await self._beside(given)
        text = self._closing(given)
        await self.emit([{"type": "text", "text": text}])
        return Turn(text=text, tokens=given.tokens)

    async def _beside(self, given: Given) -> None:
        """Say, ask or request something, perhaps."""
        chance, habits = self._chance, self._agent.habits
        if chance.random() < habits.say and given.place:
            text = self._agent.new_text("says")
            given.texts.append(text)
            with suppress(RequestFailed):
                await self._call("irc_send", channel=given.place, message=text)
        if chance.random() < habits.choice:
            await self._ask(given, "choice", ("red", "blue"))
        if chance.random() < habits.open:
            await self._ask(given, "open", ())
        if chance.random() < habits.leave and self.permit is not None:
            asked = Asked(self._agent.nick, self._agent.lives, f"rm {_same(given)}", is_leave=True)
            self._agent.ledger.asked.append(asked)
            permit = await self._unless_stopped(self.permit("Bash", {"command": asked.text}))
            asked.answer = {"allowed": permit.allowed, "why": permit.why}
            if permit.interrupt:
                raise BrokenOff

    async def _ask(self, given: Given, kind: str, options: Sequence[str]) -> None:
        """Ask people; asked again after a kill, the words are the same, unless the answer has come as a prompt."""
        if any(part.answers for part in given.parts):
            return
        place = given.place if given.place.startswith("#") else "#x"
        asked = Asked(self._agent.nick, self._agent.lives, f"{kind} {_same(given)}?", is_leave=False)
        self._agent.ledger.asked.append(asked)
        seconds = self._chance.choice((30.0, 120.0, 300.0))
        with suppress(RequestFailed):
            answer = await self._call(
                "irc_ask", channel=place, question=asked.text, options=list(options), timeout=seconds
            )
            while answer["outcome"] == "INTERROGATED":
                self._agent.ledger.asides.add((self._agent.nick, answer["msgid"]))
                answer = await self._call("irc_ask", again=answer["question"], reply="I need to know it")
            asked.answer = answer

    def _closing(self, given: Given) -> str:
        chance, habits = self._chance, self._agent.habits
        if chance.random() < habits.silent:
            return NO_REPLY
        text = self._agent.new_text("ends")
        chain = max((part.chain for part in given.parts), default=0)
        called = [part.sender for part in given.parts if part.kind == "agent"]
        if called and chance.random() < habits.reply:
            text = f"@{called[0]} chain {chain + 1} {text}"
        elif not called and chance.random() < habits.call:
            text = f"@{chance.choice(self._agent.others)} chain 1 {text}"
        given.texts.append(text)
        return text

    async def _step(self, given: Given, uses_tool: bool) -> None:
        """Think for a while, and use a tool perhaps; what it costs is told before the next step."""
        await self._unless_stopped(asyncio.sleep(self._chance.uniform(*self._agent.habits.step)))
        tokens = self._chance.randrange(50, 500)
        given.tokens += tokens
        self._agent.spend(tokens)
        self.used(given.tokens)
        self._over += self._agent.is_overspent
        if self._over > _MOST_OVER:
            self._agent.ledger.wrong.append(Violation("budget", f"{self._agent.nick} goes on after its budget is gone"))
        call = f"call-{given.tokens}"
        if uses_tool:
            await self.emit([{"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "make"}}])
            await self.emit([{"type": "tool_result", "tool_use_id": call, "content": "made"}])
        else:
            await self.emit([{"type": "thinking", "thinking": "so far so good"}])
        self._agent.ledger.whispers += len(self.take_whispers() if self.take_whispers is not None else ())
        await self._unless_stopped(asyncio.sleep(0.5))

    async def _call(self, verb: str, **fields: object) -> Any:
        """Ask the daemon as a program of the agent does; ``RequestFailed`` if it refuses."""
        daemon = self._agent.daemon
        assert daemon is not None and isinstance(daemon.socket, InProcessServer)
        client = daemon.socket.connect()
        try:
            return await self._unless_stopped(client.call(verb, **fields))
        except ConnectionError:
            raise RequestFailed("the daemon has gone") from None
        finally:
            self._agent.ledger.whispers += len(client.whispers)
            await client.close()

    async def _unless_stopped(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Wait for something; ``BrokenOff`` when the turn is interrupted first."""
        working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise BrokenOff
            return working.result()
        finally:
            working.cancel()
            stopping.cancel()


def _same(given: Given) -> int:
    """Return a number that is the same for the same message, however often it is given."""
    first = given.parts[0].msgid if given.parts else given.prompt
    return zlib.crc32(first.encode()) % 10**8


class SimJudge(Supervisor):
    """A supervisor whose model finds something now and then."""

    def __init__(self, setup: SupervisorSetup, agent: "SimAgent") -> None:
        super().__init__(setup)
        self._agent = agent
        self._chance = random.Random(f"{agent.world.seed}/judge {agent.nick} {agent.lives}")

    async def judge(self, prompt: str) -> str:
        await asyncio.sleep(self._chance.uniform(1.0, 20.0))
        if self.on_spent is not None:
            self._agent.spend(20)
            self.on_spent(20, 0.0)
        return self._chance.choice(("OK", "OK", "OK", "CORRECTION look at the clock", "THINK_DEEPER what is asked?"))
