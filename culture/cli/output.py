"""Text of others as commands print it: for the terminal of a person, or for the model of an agent that runs them."""

import os
from functools import lru_cache

from culture.config.process_owner import own_agent
from culture.protocol import text
from culture.protocol.text import Profile
from culture.protocol.vocabulary import Environment


def reader() -> Profile:
    """MODEL for a command that an agent runs, else TERMINAL."""
    return _reader(os.environ.get(Environment.NICK))


@lru_cache(maxsize=8)
def _reader(nick: str | None) -> Profile:
    return Profile.MODEL if nick or own_agent() else Profile.TERMINAL


def shown(words: str) -> str:
    """The text in its lines, cleaned for whoever reads the output."""
    return text.clean(words, reader())


def as_json(data: object) -> str:
    """The data as JSON that a terminal shows and does not obey, and in which no model finds a frame."""
    made = text.as_json(data)
    return text.clean(made, Profile.MODEL) if reader() is Profile.MODEL else made
