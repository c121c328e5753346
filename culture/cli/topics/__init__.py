"""Short pages for ``culture help``: each a file beside this one, whose first line is its title."""

from pathlib import Path

_ORDER = (
    "start",
    "rooms",
    "questions",
    "search",
    "budget",
    "loops",
    "mesh",
    "web",
    "team",
    "security",
    "files",
    "trouble",
    "install",
    "exit-codes",
    "completion",
)
_FOLDER = Path(__file__).parent


def text(topic: str) -> str:
    """The page."""
    return (_FOLDER / f"{topic}.txt").read_text(encoding="utf-8")


TITLES = {topic: text(topic).partition("\n")[0] for topic in _ORDER}
"""Every topic, in the order in which they are worth reading."""
