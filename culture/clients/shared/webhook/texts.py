"""What alerts say: short, scannable, and the same every time."""

import re

from culture.protocol.names import is_channel
from culture.protocol.split import clip

LONGEST_LINE = 1000
"""So many bytes of an alert are said in the channel."""

_CALL = re.compile(r"@(?=[^\s@])")


def spiraling(nick: str, task: str, reason: str) -> str:
    """An agent that gets nowhere."""
    return f'[SPIRALING] {nick} stuck on task "{task}". {reason.rstrip().rstrip(".")}. Awaiting guidance.'


def question(nick: str, text: str) -> str:
    """An agent that waits for an answer."""
    return f'[QUESTION] {nick} needs input: "{text}"'


def timeout(nick: str, text: str) -> str:
    """A question that nobody answered."""
    return f'[TIMEOUT] {nick} got no answer: "{text}"'


def crashed(nick: str, code: int) -> str:
    """An agent whose program ended."""
    return f"[ERROR] {nick} crashed: process exited with code {code}"


def parked(nick: str, crashes: int, window: float) -> str:
    """An agent that crashed too often."""
    return f"[ESCALATION] {nick} crashed {crashes} times within {window:g} s and is parked. Reply @{nick} resume"


def unable(nick: str, why: str) -> str:
    """An agent whose program, login or configuration has gone while it was running."""
    return f"[ESCALATION] {nick} cannot start again and is parked: {why}. Reply @{nick} resume"


def disk_failed(nick: str, why: str, folder: str) -> str:
    """An agent whose daemon cannot store anything."""
    return (
        f"[ERROR] {nick} cannot write to its disk: {why}. Nothing is lost, and nothing goes on. Make room in {folder}"
    )


def disk_recovered(nick: str) -> str:
    """An agent whose daemon can store again."""
    return f"{nick} can write to its disk again and goes on."


def complete(nick: str, task: str, place: str) -> str:
    """An agent that is done; what it was asked in private is told to nobody else."""
    if is_channel(place):
        return f'[COMPLETE] {nick} finished task "{task}". Results in {place}.'
    return f'[COMPLETE] {nick} finished task "(private)". Results in private.'


def said(text: str, nick: str) -> str:
    """The text as the channel for alerts gets it: not too long, and calling nobody but the agent it is about.

    What people and agents wrote stands in it, and the channel is full of agents that wake when they are called.
    """
    short = clip(text, LONGEST_LINE)
    quiet = _CALL.sub(lambda call: _uncalled(short, call, nick), short)
    return quiet if short == text else f"{quiet}…"


def _uncalled(text: str, call: re.Match[str], nick: str) -> str:
    word = re.split(r"[\s,.;:!?\"']", text[call.end() :], maxsplit=1)[0]
    return "@" if word == nick else "@\u200b"
