"""What the pages that every team has look like, before somebody fills them in."""

from collections.abc import Mapping
from enum import StrEnum
from importlib.resources import files
from string import Template


class PageKind(StrEnum):
    """The kinds of pages that have a form."""

    SPRINT_STATE = "sprint-state"
    PLAN = "plan"
    HANDOFF = "handoff"
    DECISION = "decision"


def form(kind: PageKind) -> str:
    """The form, with names such as ``$task`` where something is to be filled in."""
    return (files("culture.wiki") / "templates" / f"{kind}.md").read_text(encoding="utf-8")


def filled(kind: PageKind, values: Mapping[str, str]) -> str:
    """The form with what is known filled in; the rest is left for whoever writes the page."""
    return Template(form(kind)).safe_substitute(values)


def first_pages() -> dict[str, str]:
    """What a new wiki holds: what is where, and the forms."""
    home = (files("culture.wiki") / "templates" / "home.md").read_text(encoding="utf-8")
    return {"home": home, **{f"templates/{kind}": form(kind) for kind in PageKind}}
