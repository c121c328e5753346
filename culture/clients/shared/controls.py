"""What people may tell an agent's daemon: the control words, each with its answer."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from culture.clients.shared.held import Scope
from culture.protocol.vocabulary import ControlWord


@dataclass(frozen=True, slots=True)
class Order:
    """A control word of a person: who said it, where, and why."""

    scope: Scope
    by: str
    reason: str = ""
    place: str = ""


class Controlled(Protocol):
    """What the words act upon."""

    async def pause(self, *, by: str) -> None:
        """Give the agent nothing more."""

    async def resume(self, why: str, *, by: str, place: str) -> None:
        """Go on."""

    async def compact(self) -> None:
        """Shorten its context."""

    async def clear(self) -> None:
        """Begin a new conversation."""

    async def abort(self) -> str:
        """Break off the present task; what was broken off."""

    async def go_on(self, scope: Scope) -> str:
        """Give the agent what was held back, as far as the scope goes; what that was."""

    async def stand_down(self) -> str:
        """Let only people wake it."""

    def summary(self) -> str:
        """What the agent is doing, in a line."""

    def spent(self) -> str:
        """What today has cost, in a line."""


async def _pause(agent: Controlled, order: Order) -> str:
    await agent.pause(by=order.by)
    return "paused: messages are kept until you say resume."


async def _resume(agent: Controlled, order: Order) -> str:
    await agent.resume(order.reason, by=order.by, place=order.place)
    return f"going on. {agent.summary()}"


async def _compact(agent: Controlled, order: Order) -> str:
    await agent.compact()
    return "I shorten my context as soon as I am free."


async def _clear(agent: Controlled, order: Order) -> str:
    await agent.clear()
    return "I begin a new conversation as soon as I am free."


async def _status(agent: Controlled, order: Order) -> str:
    return agent.summary()


async def _budget(agent: Controlled, order: Order) -> str:
    return agent.spent()


async def _abort(agent: Controlled, order: Order) -> str:
    return await agent.abort()


async def _go_on(agent: Controlled, order: Order) -> str:
    return await agent.go_on(order.scope)


async def _stand_down(agent: Controlled, order: Order) -> str:
    return await agent.stand_down()


async def _help(agent: Controlled, order: Order) -> str:
    return f"I understand: {', '.join(word.value for word in CONTROLS)}. Everything else goes to the agent itself."


CONTROLS: dict[ControlWord, Callable[[Controlled, Order], Awaitable[str]]] = {
    ControlWord.STATUS: _status,
    ControlWord.PAUSE: _pause,
    ControlWord.RESUME: _resume,
    ControlWord.ABORT: _abort,
    ControlWord.GO_ON: _go_on,
    ControlWord.STAND_DOWN: _stand_down,
    ControlWord.COMPACT: _compact,
    ControlWord.CLEAR: _clear,
    ControlWord.BUDGET: _budget,
    ControlWord.HELP: _help,
}
