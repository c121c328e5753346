"""People who give agents work, answer their questions after a while, and say pause, resume, abort and go on."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from culture.protocol.message import Message
from tests.simulation.clients import Person, SaidMessage
from tests.simulation.workload import MAIN

_OPEN = re.compile(r"\[QUESTION\] open \d+\?(?: \((q\d+)\))?")
_CHOICE = re.compile(r"Waiting for response\. Reply with: @\S+ (\S+?)(?: \((q\d+)\))?")
_PAUSE = (20.0, 240.0)
_PATIENCE = (5.0, 200.0)
_ANSWERED = 0.7


@dataclass(eq=False)
class Job:
    """Work that a person has given to agents."""

    said: SaidMessage
    nicks: Sequence[str]


class Colleague:
    """A person who works with agents."""

    def __init__(self, person: Person, nicks: Sequence[str], every: float, is_busy: Callable[[], bool]) -> None:
        """``every``: the mean seconds between two acts; ``is_busy`` says whether there are more to come."""
        self.person, self._nicks, self._every, self._is_busy = person, nicks, every, is_busy
        self.jobs: list[Job] = []
        self.controls: dict[str, set[str]] = {}
        """By control word the agents that were told it."""
        self._chance: random.Random = person.world.generator(f"colleague {person.first_nick}")
        person.on_message = self._heard

    async def live(self) -> None:
        """Do something now and then."""
        loop = self.person.host.loop
        if self.person.is_there:
            self.act()
        if self._is_busy():
            loop.call_later(self._chance.expovariate(1 / self._every), lambda: loop.create_task(self.live()) and None)

    def act(self) -> None:
        """Give work, or steer an agent."""
        chance = self._chance
        nick = chance.choice(self._nicks)
        dice = chance.random()
        if dice < 0.55:
            self.give(MAIN, [nick])
        elif dice < 0.65:
            self.give(MAIN, chance.sample(self._nicks, 2))
        elif dice < 0.85:
            self.give(nick, [nick])
        elif dice < 0.91:
            self.steer(nick, "pause")
            self.person.host.loop.call_later(chance.uniform(*_PAUSE), self.steer, nick, "resume")
        else:
            self.steer(nick, chance.choice(("status", "budget", "abort", "go on", "resume")))

    def give(self, target: str, nicks: Sequence[str]) -> None:
        """Say what is to be done, in a channel or in private."""
        call = " ".join(f"@{nick}" for nick in nicks)
        text = f"{call} do job {len(self.jobs)} of {self.person.first_nick}"
        self.jobs.append(Job(self.person.say(target, text), nicks))

    def steer(self, nick: str, word: str) -> None:
        """Say a control word."""
        if self.person.is_there:
            self.controls.setdefault(word, set()).add(nick)
            self.person.send(f"PRIVMSG {nick} :@{nick} {word}")

    def _heard(self, line: Message) -> None:
        """Answer a question, perhaps, when some time has passed."""
        text = line.params[-1]
        if self._chance.random() > _ANSWERED:
            return
        if (found := _CHOICE.fullmatch(text)) is not None:
            option = self._chance.choice([each for each in found[1].split("/") if each != "abort"])
            self._answer_later(line, option, found[2])
        elif (found := _OPEN.fullmatch(text)) is not None:
            self._answer_later(line, f"it is {self._chance.randrange(1000)}", found[1])

    def _answer_later(self, line: Message, words: str, number: str | None) -> None:
        chance = self._chance
        nick = (line.source or "").partition("!")[0]
        is_private = line.params[0] != MAIN
        target = nick if is_private else MAIN
        msgid = line.tags.get("msgid")
        tag = f"@+draft/reply={msgid} " if msgid and chance.random() < 0.5 else ""
        said = f"{words} {number}" if number and not tag else words
        call = "" if is_private else f"@{nick} "

        def answer() -> None:
            if self.person.is_there:
                self.person.send(f"{tag}PRIVMSG {target} :{call}{said}")

        self.person.host.loop.call_later(chance.uniform(*_PATIENCE), answer)
