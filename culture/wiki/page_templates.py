"""Templates of the pages that every team has."""

from collections.abc import Mapping
from enum import StrEnum
from importlib.resources import files
from string import Template


class PageKind(StrEnum):
    """The kinds of wiki pages for which there is a template."""

    SPRINT_STATE = "sprint-state"
    PLAN = "plan"
    HANDOFF = "handoff"
    DECISION = "decision"


def template(kind: PageKind) -> str:
    """Return the template of a page kind, with placeholders such as ``$task``."""
    return (files("culture.wiki") / "templates" / f"{kind}.md").read_text(encoding="utf-8")


def fill_template(kind: PageKind, values: Mapping[str, str]) -> str:
    """Return the template of a page kind with its placeholders replaced.

    ``values``: text by name of the placeholder. Placeholders without a value stay as they are.
    """
    return Template(template(kind)).safe_substitute(values)


def first_pages() -> dict[str, str]:
    """Return the texts of a new wiki's pages, by name: the home page and the templates."""
    home = (files("culture.wiki") / "templates" / "home.md").read_text(encoding="utf-8")
    return {"home": home, **{f"templates/{kind}": template(kind) for kind in PageKind}}
