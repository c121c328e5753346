"""What a supervisor's model may answer: exactly one of four verdicts; everything else is none."""

import re
from dataclasses import dataclass
from enum import StrEnum


class Action(StrEnum):
    """What a verdict asks for; all but OK are types of whispers too."""

    OK = "OK"
    CORRECTION = "CORRECTION"
    THINK_DEEPER = "THINK_DEEPER"
    ESCALATION = "ESCALATION"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One judgement, and what the agent is to be told."""

    action: Action
    message: str = ""


OK = Verdict(Action.OK)

_WORDS = "|".join(Action)
# Models set the word in bold or in brackets, put a colon or a dash behind it, or repeat the list's hyphen.
_VERDICT = re.compile(rf"[-\s*`\[]*({_WORDS})(?![\w])[\s*`\]:.,—–-]*(.*)", re.DOTALL)
_ANOTHER = re.compile(rf"^[-\s*`\[]*(?:{_WORDS})(?![\w])", re.MULTILINE)


def parse(answer: str) -> Verdict | None:
    """The verdict that an answer is; None when it is none, or several."""
    found = _VERDICT.fullmatch(answer.strip())
    if found is None or len(_ANOTHER.findall(answer)) > 1:
        return None
    action, message = Action(found[1]), " ".join(found[2].strip("`*\n ").split())
    if action is Action.OK:
        return OK
    return Verdict(action, message) if message else None
