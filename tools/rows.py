"""The rows of docs/requirements/: what is wanted, read from the files that people edit."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "docs" / "requirements"
BY_HAND = ROOT / "docs" / "evidence" / "by-hand.toml"

_GROUP = re.compile(r"## (?P<letter>[A-Z])\. (?P<title>.+)")
_ROW = re.compile(r"- \*\*(?P<first>[A-Z]\d+)(?:-(?P<last>[A-Z]\d+))?\*\* (?P<text>.+)")
_ID = re.compile(r"(?P<letter>[A-Z])(?P<digits>\d+)")


class Kind(Enum):
    """The two lists that tests are tied to; the value is the name of the marker."""

    REQUIREMENT = "requirement"
    FAULT = "fault"

    @property
    def rows_file(self) -> Path:
        """The file that people edit."""
        return SOURCE / ("rows.md" if self is Kind.REQUIREMENT else "faults.md")

    @property
    def plural(self) -> str:
        """The name of the list in the TOML files."""
        return self.value + "s"


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that is wanted."""

    id: str
    group: str
    text: str


class SourceError(Exception):
    """The files under docs/requirements/ or docs/evidence/ contradict themselves."""


def _span(first: str, last: str) -> list[str]:
    """``I1`` to ``I8``, with as many digits as ``first`` has."""
    start, stop = _ID.fullmatch(first), _ID.fullmatch(last)
    if not start or not stop or start["letter"] != stop["letter"]:
        raise SourceError(f"{first}-{last} is not a range of ids")
    width = len(start["digits"])
    return [f"{start['letter']}{n:0{width}}" for n in range(int(start["digits"]), int(stop["digits"]) + 1)]


def _parse(lines: Sequence[str]) -> Iterator[Row]:
    group = ""
    for line in lines:
        if heading := _GROUP.fullmatch(line):
            group = f"{heading['letter']}. {heading['title']}"
        elif row := _ROW.fullmatch(line):
            for row_id in _span(row["first"], row["last"] or row["first"]):
                yield Row(row_id, group, row["text"])


@cache
def load(kind: Kind) -> Mapping[str, Row]:
    """All rows of a list, by id, in the order of the file."""
    rows: dict[str, Row] = {}
    for row in _parse(kind.rows_file.read_text(encoding="utf-8").splitlines()):
        if row.id in rows or not row.group.startswith(row.id[0]):
            raise SourceError(f"{kind.rows_file.name}: {row.id} stands there twice, or in another group")
        rows[row.id] = row
    return rows


def _expand(kind: Kind, spec: str) -> list[str]:
    """The existing ids that ``A13``, ``A09-A15`` or ``D`` stands for."""
    rows = load(kind)
    if len(spec) == 1:
        ids = [row_id for row_id in rows if row_id[0] == spec]
    else:
        first, _, last = spec.partition("-")
        ids = [row_id for row_id in _span(first, last or first) if row_id in rows]
    if not ids:
        raise SourceError(f"plan.toml: no {kind.value} is called {spec}")
    return ids


@dataclass(frozen=True, slots=True)
class Plan:
    """What is said of rows beside the tests: who brings them, what replaced them, why they are open."""

    parts: Mapping[str, str]
    superseded: Mapping[str, int]
    reasons: Mapping[str, str]

    @classmethod
    def load(cls, kind: Kind) -> "Plan":
        """Read plan.toml, and refuse ids that no row has."""
        said: dict[str, Any] = tomllib.loads((SOURCE / "plan.toml").read_text(encoding="utf-8"))
        parts: dict[str, str] = {}
        for part in said["part"]:
            for spec in part[kind.plural]:
                for row_id in _expand(kind, spec):
                    parts.setdefault(row_id, part["name"])
        superseded = said["superseded"] if kind is Kind.REQUIREMENT else {}
        reasons = said["open"][kind.plural]
        refuse_unknown(kind, [*superseded, *reasons], "plan.toml")
        return cls(parts, superseded, reasons)


def refuse_unknown(kind: Kind, ids: Sequence[str], where: str) -> None:
    """Raise when an id names no row."""
    if unknown := [row_id for row_id in ids if row_id not in load(kind)]:
        raise SourceError(f"{where}: no {kind.value} is called {', '.join(unknown)}")


@dataclass(frozen=True, slots=True)
class Shown:
    """A row shown by hand: what was done, when, with which figures."""

    done: str
    when: str
    figures: str = ""
    evidence: tuple[str, ...] = ()


def by_hand(kind: Kind) -> Mapping[str, Shown]:
    """What docs/evidence/by-hand.toml says; the files it names must be there."""
    said: dict[str, Any] = tomllib.loads(BY_HAND.read_text(encoding="utf-8")).get(kind.plural, {})
    refuse_unknown(kind, list(said), BY_HAND.name)
    shown: dict[str, Shown] = {}
    for row_id, entry in said.items():
        evidence = tuple(entry.get("evidence", ()))
        if missing := [name for name in evidence if not (BY_HAND.parent / name).is_file()]:
            raise SourceError(f"{BY_HAND.name}: {row_id} names {', '.join(missing)}, which is not in docs/evidence/")
        shown[row_id] = Shown(entry["done"], str(entry["when"]), entry.get("figures", ""), evidence)
    return shown
