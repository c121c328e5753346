"""What a member is told about its role: the project's own words where it has some, else ours."""

import logging
import re
import time
from collections.abc import Mapping
from pathlib import Path

from culture.config.paths import leads_out
from culture.config.team import ROLES
from culture.lib.ratelimit import SlidingWindow
from culture.protocol.names import fold

log = logging.getLogger(__name__)

FOLDER = "prompts"
SHIPPED = Path(__file__).with_name(FOLDER)
WORKER = "worker"
HANDOFF = "handoff"
IRC = "python3 -P -m culture.clients.shared.skill.irc_client"
"""The command with which a member talks on IRC, as its skill has it."""
_WIKI = "The wiki is the record of your team, in whatever folder you are."
_WIKI_COMMANDS = """`culture wiki read PAGE` prints a page, and on standard error its
  revision; `culture wiki write PAGE --base REVISION -m 'why' <<'END'` writes its whole new text on top of that
  revision, and a new page without `--base`; `culture wiki list` and `culture wiki search WORDS` find pages."""
_WIKI_TOOLS = """`mcp__dev-wiki__wiki_read`, `mcp__dev-wiki__wiki_write`, `mcp__dev-wiki__wiki_list` and
  `mcp__dev-wiki__wiki_search`"""
_PLACE = re.compile(r"\{([a-z_]+)\}")


def load(project: Path, role: str, facts: Mapping[str, str]) -> str:
    """The text for a role, with what is known put into its places; for a worker that of all workers comes first."""
    parts = [_read(project, role)]
    if role in ROLES[2:]:
        parts.insert(0, _read(project, WORKER))
    return "\n".join(filled(part, facts).strip() + "\n" for part in parts)


def on_wiki(*, by_command: bool, by_tools: bool) -> str:
    """How a member reaches its team's wiki."""
    commands, tools = [_WIKI_COMMANDS] * by_command, [f"Your tools for it are {_WIKI_TOOLS}."] * by_tools
    return " ".join([_WIKI, *commands, *tools])


def filled(text: str, facts: Mapping[str, str]) -> str:
    """The text with ``{name}`` and the like replaced; what is not known stays as it is."""
    return _PLACE.sub(lambda place: facts.get(place[1], place[0]), text)


def _read(project: Path, role: str) -> str:
    return own(project, f"{FOLDER}/{role}.md", SHIPPED / f"{role}.md").read_text(encoding="utf-8")


def own(project: Path, name: str, shipped: Path) -> Path:
    """The project's own file of this name, else ours; a link that leads out of the project is none of its own."""
    file = project / name
    if not file.is_file():
        return shipped
    if leads_out(file, project):
        log.warning("%s is not read: it is a link that leads out of the project, and a member can make one", file)
        return shipped
    return file


MOST = 5
"""Prompts of one kind that a member gets within ``WITHIN``."""
WITHIN = 3600.0
LAST = " You are not prompted about further ones for an hour: ask, or do something else."
"""End of the last prompt before the limit."""


class PromptLimit:
    """Counts the prompts of one kind, by member. A restart of the orchestrator begins the count anew."""

    def __init__(self) -> None:
        self._prompts = SlidingWindow()

    def take(self, nick: str) -> str | None:
        """Count one more prompt: what to add to it, mostly nothing; None where the member gets no more."""
        member, now = fold(nick), time.monotonic()
        count = self._prompts.count(member, WITHIN, now)
        if count >= MOST:
            return None
        self._prompts.add(member, now)
        return LAST if count + 1 == MOST else ""
