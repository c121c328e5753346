"""Role prompts: loads the project's own file or ours, and fills in the placeholders."""

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
"""Command with which a member talks on IRC, as its skill documents it."""
_WIKI = "The wiki is the record of your team, in whatever folder you are."
_WIKI_COMMANDS = """`culture wiki read PAGE` prints a page, and on standard error its
  revision; `culture wiki write PAGE --base REVISION -m 'why' <<'END'` writes its whole new text on top of that
  revision, and a new page without `--base`; `culture wiki list` and `culture wiki search WORDS` find pages."""
_WIKI_TOOLS = """`mcp__dev-wiki__wiki_read`, `mcp__dev-wiki__wiki_write`, `mcp__dev-wiki__wiki_list` and
  `mcp__dev-wiki__wiki_search`"""
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


def load(project: Path, role: str, values: Mapping[str, str]) -> str:
    """Return a role's prompt with its placeholders replaced by ``values``.

    It is read from the project's own file, else from ours; a worker's begins with the part that all workers share.
    """
    texts = [_read(project, role)]
    if role in ROLES[2:]:
        texts.insert(0, _read(project, WORKER))
    return "\n".join(fill_placeholders(text, values).strip() + "\n" for text in texts)


def on_wiki(*, by_command: bool, by_tools: bool) -> str:
    """Return the part of a role prompt that explains how to use the team's wiki.

    The member can use it by ``culture wiki`` commands, by MCP tools, or both.
    """
    commands, tools = [_WIKI_COMMANDS] * by_command, [f"Your tools for it are {_WIKI_TOOLS}."] * by_tools
    return " ".join([_WIKI, *commands, *tools])


def fill_placeholders(text: str, values: Mapping[str, str]) -> str:
    """Replace placeholders such as ``{name}`` by their values; unknown ones stay as they are."""
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)


def _read(project: Path, role: str) -> str:
    return project_file(project, f"{FOLDER}/{role}.md", SHIPPED / f"{role}.md").read_text(encoding="utf-8")


def project_file(project: Path, name: str, shipped: Path) -> Path:
    """Return the path of the project's own file ``name``, or ``shipped`` if it has none.

    A symlink that leads out of the project is ignored, because a member can make one.
    """
    file = project / name
    if not file.is_file():
        return shipped
    if leads_out(file, project):
        log.warning("%s is not read: it is a link that leads out of the project, and a member can make one", file)
        return shipped
    return file


MOST = 5
"""Number of prompts of one kind that a member gets within ``WITHIN`` seconds."""
WITHIN = 3600.0
LAST = " You are not prompted about further ones for an hour: ask, or do something else."
"""Appended to the last prompt before the limit."""


class PromptLimit:
    """Limits how many prompts of one kind a member gets; a restart resets the count."""

    def __init__(self) -> None:
        self._prompts = SlidingWindow()

    def take(self, nick: str) -> str | None:
        """Count one more prompt of a member, and return the text to append to it.

        The text says that the prompt is the last for an hour; else it is "". Returns None if the member has had as
        many prompts as allowed.
        """
        member, now = fold(nick), time.monotonic()
        count = self._prompts.count(member, WITHIN, now)
        if count >= MOST:
            return None
        self._prompts.add(member, now)
        return LAST if count + 1 == MOST else ""
