"""What the task loop needs of the rooms and of the agent's program."""

from collections.abc import Mapping
from typing import Protocol


class Say(Protocol):
    """Says something in a place, at once or as soon as there is a connection."""

    def __call__(self, place: str, text: str, *, notice: bool = False, tags: Mapping[str, str] = ...) -> None:
        """Say it."""


class Feeder(Protocol):
    """Takes prompts for the agent."""

    @property
    def ready(self) -> bool:
        """Whether it takes one now."""

    async def feed(self, text: str) -> None:
        """Give the agent a prompt."""
