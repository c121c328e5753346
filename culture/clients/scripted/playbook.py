"""A playbook: which prompt is answered with which steps."""

import re
from dataclasses import dataclass
from pathlib import Path

from culture.clients.scripted.playbook_schema import Value, checked_steps
from culture.clients.scripted.steps import Step
from culture.clients.shared.documents import Document
from culture.clients.shared.documents import read as read_document
from culture.clients.shared.verdicts import parse as parse_verdict

BUILT_IN = Path(__file__).with_name("default.yaml")
"""What an agent follows that was given no playbook."""
NAMED = {name: BUILT_IN.with_name(f"{name}.yaml") for name in ("guide", "parrot")}
"""Playbooks that come along, by the names that agents.yaml may give."""
_PLAIN = ("yes", "no")
"""What a team that has a model asked who is idle wants to hear."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What to do when the prompt matches."""

    pattern: re.Pattern[str]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict of a supervisor that follows the playbook, when what it is shown matches."""

    pattern: re.Pattern[str]
    verdict: str


@dataclass(frozen=True, slots=True)
class Playbook:
    """The rules in their order, and what is done when none matches."""

    rules: tuple[Rule, ...]
    default: tuple[Step, ...]
    judgements: tuple[Judgement, ...] = ()

    def chosen(self, prompt: str) -> tuple[re.Match[str] | None, tuple[Step, ...]]:
        """The first rule that matches, and its match; None with the default."""
        for rule in self.rules:
            match = rule.pattern.search(prompt)
            if match is not None:
                return match, rule.steps
        return None, self.default

    def judged(self, prompt: str) -> str:
        """The verdict on an agent's last turns: that of the first rule that matches, else OK."""
        for judgement in self.judgements:
            match = judgement.pattern.search(prompt)
            if match is not None:
                return judgement.verdict
        return "OK"


def read(file: Path) -> Playbook:
    """The playbook in a file; WrongConfiguration names file, line and remedy."""
    return parse(read_document(file))


def parse(document: Document) -> Playbook:
    """The playbook that a document is."""
    keys = Value(document, (), document.data).block(frozenset(), frozenset({"rules", "default", "judge"}))
    if not keys:
        raise Value(document, (), None).wrong("says nothing", "it needs rules: or default:")
    return Playbook(
        rules=_rules(keys["rules"]) if "rules" in keys else (),
        default=checked_steps(keys["default"]) if "default" in keys else (),
        judgements=_judgements(keys["judge"]) if "judge" in keys else (),
    )


def _rules(value: Value) -> tuple[Rule, ...]:
    if not isinstance(value.said, tuple):
        raise value.wrong("expected a list of rules", "begin each with a hyphen and a space: - when: hello")
    return tuple(_rule(value.inside(number, said)) for number, said in enumerate(value.said))


def _rule(value: Value) -> Rule:
    keys = value.block(frozenset({"when", "steps"}))
    pattern = _pattern(keys["when"])
    groups = frozenset([*pattern.groupindex, *map(str, range(1, pattern.groups + 1))])
    return Rule(pattern, checked_steps(Value(value.source, keys["steps"].key, keys["steps"].said, groups)))


def _judgements(value: Value) -> tuple[Judgement, ...]:
    if not isinstance(value.said, tuple):
        raise value.wrong("expected a list of judgements", "begin each with a hyphen and a space: - when: cmake")
    return tuple(_judgement(value.inside(number, said)) for number, said in enumerate(value.said))


def _judgement(value: Value) -> Judgement:
    keys = value.block(frozenset({"when", "verdict"}))
    pattern, verdict = _pattern(keys["when"]), keys["verdict"].text()
    if parse_verdict(verdict) is None and verdict not in _PLAIN:
        raise keys["verdict"].wrong(f"{verdict!r} is no verdict", "write OK, or CORRECTION and what to say")
    return Judgement(pattern, verdict)


def _pattern(value: Value) -> re.Pattern[str]:
    try:
        return re.compile(value.text(), re.IGNORECASE | re.MULTILINE)
    except re.error as error:
        raise value.wrong(
            f"no regular expression: {error}", "write a backslash before ( ) [ ] * + ? that are meant"
        ) from error
