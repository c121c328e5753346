"""Read a playbook: rules that map prompts to steps, and prompts to verdicts."""

import re
from dataclasses import dataclass
from pathlib import Path

from culture.clients.scripted.playbook_schema import Value, checked_steps
from culture.clients.scripted.steps import Step
from culture.clients.shared.documents import Document
from culture.clients.shared.documents import read as read_document
from culture.clients.shared.verdicts import parse as parse_verdict

BUILT_IN = Path(__file__).with_name("default.yaml")
"""The default playbook."""
NAMED = {name: BUILT_IN.with_name(f"{name}.yaml") for name in ("guide", "parrot")}
"""Included playbooks, by their name in agents.yaml."""
_PLAIN = ("yes", "no")
"""Further verdicts: answers to a team's question whether a worker is idle."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The steps of a playbook for prompts that match a pattern."""

    pattern: re.Pattern[str]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict of the scripted supervisor for prompts that match a pattern."""

    pattern: re.Pattern[str]
    verdict: str


@dataclass(frozen=True, slots=True)
class Playbook:
    """A playbook: rules in order, default steps, and verdicts of the scripted supervisor."""

    rules: tuple[Rule, ...]
    default: tuple[Step, ...]
    judgements: tuple[Judgement, ...] = ()

    def chosen(self, prompt: str) -> tuple[re.Match[str] | None, tuple[Step, ...]]:
        """Return match and steps of the first rule that matches the prompt.

        If none does, these are None and the default steps.
        """
        for rule in self.rules:
            match = rule.pattern.search(prompt)
            if match is not None:
                return match, rule.steps
        return None, self.default

    def judged(self, prompt: str) -> str:
        """Return the verdict of the first judgement whose pattern matches the prompt, else ``OK``."""
        for judgement in self.judgements:
            match = judgement.pattern.search(prompt)
            if match is not None:
                return judgement.verdict
        return "OK"


def read(file: Path) -> Playbook:
    """Return the playbook in a file; ``WrongConfiguration`` names file, line and remedy."""
    return parse(read_document(file))


def parse(document: Document) -> Playbook:
    """Return the playbook in a YAML document; ``WrongConfiguration`` on mistakes."""
    keys = Value(document, (), document.data).block(frozenset(), frozenset({"rules", "default", "judge"}))
    if not keys:
        raise Value(document, (), None).wrong("says nothing", "it needs rules: or default:")
    return Playbook(
        rules=_rules(keys["rules"]) if "rules" in keys else (),
        default=checked_steps(keys["default"]) if "default" in keys else (),
        judgements=_judgements(keys["judge"]) if "judge" in keys else (),
    )


def _rules(value: Value) -> tuple[Rule, ...]:
    if not isinstance(value.content, tuple):
        raise value.wrong("expected a list of rules", "begin each with a hyphen and a space: - when: hello")
    return tuple(_rule(value.inside(number, content)) for number, content in enumerate(value.content))


def _rule(value: Value) -> Rule:
    keys = value.block(frozenset({"when", "steps"}))
    pattern = _pattern(keys["when"])
    groups = frozenset([*pattern.groupindex, *map(str, range(1, pattern.groups + 1))])
    return Rule(pattern, checked_steps(Value(value.source, keys["steps"].key, keys["steps"].content, groups)))


def _judgements(value: Value) -> tuple[Judgement, ...]:
    if not isinstance(value.content, tuple):
        raise value.wrong("expected a list of judgements", "begin each with a hyphen and a space: - when: cmake")
    return tuple(_judgement(value.inside(number, content)) for number, content in enumerate(value.content))


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
