"""How long things may take."""

from dataclasses import dataclass

from culture.transport import backoff


@dataclass(frozen=True, slots=True)
class Timing:
    """In seconds."""

    silence: float = 45.0
    """A connection from which nothing has come for so long is dead; it is asked in time."""
    registration: float = 30.0
    """From dialling until the server has let us in."""
    first_word: float = 30.0
    """Until a new connection has brought anything at all."""
    answer: float = 30.0
    """Until a server that lives has answered a command."""
    first_pause: float = backoff.FIRST
    longest_pause: float = backoff.LONGEST
    regain: float = 30.0
    """Between two tries for the nick that somebody else has."""
