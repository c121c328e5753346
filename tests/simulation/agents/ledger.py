"""What the models of all agents were given, said, asked and used, as they saw it: the other half of each promise."""

import re
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.invariants import Violation

_HEAD = re.compile(r"\[IRC (?:DM|(?:@mention )?in (?P<place>\S+))\] <(?P<sender>[^>]+)> (?P<text>.*)")
_FACTS = re.compile(r"  \(class: (?P<kind>\w+); account: [^;]+; msgid: (?P<msgid>[^;]+); time: [^;)]+(?P<more>.*)\)")
_NEWS = re.compile(r"\[SELF\] .*")
_FURTHER = re.compile(r"and (\d+) more: irc_read ")
_REPEATED = "repeated: "
_ABOUT = re.compile(r"answers your question (q\d+), .*: [A-Z]+")
_NEWS_OF = re.compile(r"your question (q\d+) ")
_CHAIN = re.compile(r"\bchain (\d+)\b")


@dataclass(frozen=True, slots=True)
class Part:
    """One message in a prompt."""

    place: str
    """The channel, or the sender of a private message."""
    sender: str
    kind: str
    msgid: str
    text: str
    is_repeated: bool
    answers: str = ""
    """The id of the question that it answers."""

    @property
    def chain(self) -> int:
        """Return how many automatic replies its text tells of."""
        found = _CHAIN.search(self.text) if self.kind != "human" else None
        return int(found[1]) if found else 0


@dataclass(eq=False)
class Given:
    """One prompt, and what the model made of it."""

    nick: str
    life: int
    at: float
    prompt: str
    parts: list[Part]
    news_of: list[str]
    """The ids of questions of which it says that nobody answered."""
    further: int
    """Messages that it only counts."""
    texts: list[str] = field(default_factory=list)
    """What the model said in this turn, each text once in the whole world."""
    tokens: int = 0
    ended: str = ""
    """``done``, ``silent``, ``interrupted``, ``failed`` or ``died``; nothing while it lasts, or if it was killed."""

    @property
    def place(self) -> str:
        """Return where the prompt came from."""
        return self.parts[0].place if self.parts else ""


@dataclass(eq=False)
class Asked:
    """One call of ``irc_ask``, or one request for leave to use a tool."""

    nick: str
    life: int
    text: str
    is_leave: bool
    answer: dict[str, Any] | None = None
    """What came of it; None while it waits, or when the daemon was killed meanwhile."""


class Ledger:
    """Notes everything, and what is wrong at once."""

    def __init__(self) -> None:
        self.given: list[Given] = []
        self.asked: list[Asked] = []
        self.asides: set[tuple[str, str]] = set()
        """Agents, and the ids of messages that they were told as questions back."""
        self.whispers = 0
        self.wrong: list[Violation] = []

    def give(self, nick: str, life: int, at: float, prompt: str) -> Given:
        """Note a prompt."""
        parts = parse(prompt)
        lines = prompt.splitlines()
        news = [each for line in lines if _NEWS.match(line) for each in _NEWS_OF.findall(line)]
        further = sum(int(found[1]) for line in lines if (found := _FURTHER.match(line)))
        given = Given(nick, life, at, prompt, parts, news, further)
        self.given.append(given)
        if not parts and not any(map(_NEWS.match, lines)):
            self.wrong.append(Violation("frame", f"{nick}: no message in the prompt {prompt!r}"))
        if len({part.place for part in parts}) > 1:
            self.wrong.append(Violation("mixed", f"{nick}: several conversations in the prompt {prompt!r}"))
        return given


def parse(prompt: str) -> list[Part]:
    """Return the messages of a prompt."""
    parts: list[Part] = []
    head: re.Match[str] | None = None
    for line in prompt.splitlines():
        if (found := _HEAD.match(line)) is not None:
            head = found
        elif head is not None and (facts := _FACTS.match(line)) is not None:
            about = _ABOUT.search(facts["more"])
            place = head["place"] or head["sender"]
            sender, text, is_repeated = head["sender"], head["text"], _REPEATED in facts["more"]
            answers = about[1] if about else ""
            parts.append(Part(place, sender, facts["kind"], facts["msgid"], text, is_repeated, answers))
            head = None
    return parts
