"""The contract of a backend: what the daemon asks of an agent's runner and of its supervisor."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any


class AgentRunnerBase(ABC):
    """Runs one agent. The daemon sets the callbacks before ``start`` and uses nothing else."""

    on_message: Callable[[dict[str, Any]], Awaitable[None]] | None = None
    on_exit: Callable[[int], Awaitable[None]] | None = None

    @abstractmethod
    async def start(self, initial_prompt: str = "") -> None:
        """Spawn or connect to the agent; it is running and takes prompts when this returns."""

    @abstractmethod
    async def stop(self) -> None:
        """Interrupt what it does, end it, by force after a while, and call ``on_exit(0)``."""

    @abstractmethod
    async def send_prompt(self, text: str) -> None:
        """Queue a prompt and return at once; prompts are worked off in order."""

    @abstractmethod
    def is_running(self) -> bool:
        """Whether it takes prompts."""

    @property
    @abstractmethod
    def session_id(self) -> str | None:
        """The session to take up again after a restart; None when there is none."""


class SupervisorBase(ABC):
    """Watches one agent's turns and whispers to it."""

    on_whisper: Callable[[str, str], Awaitable[None]] | None = None
    on_escalation: Callable[[str], Awaitable[None]] | None = None

    @abstractmethod
    async def start(self) -> None:
        """Begin to watch."""

    @abstractmethod
    async def stop(self) -> None:
        """End it; nothing is whispered afterwards."""

    @abstractmethod
    async def observe(self, turn: dict[str, Any]) -> None:
        """Take note of one dict of ``AgentRunnerBase.on_message``."""
