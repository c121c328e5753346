"""What the invariants return."""

from typing import NamedTuple


class Violation(NamedTuple):
    """Something that was wrong: the rule, and what was seen."""

    rule: str
    text: str
