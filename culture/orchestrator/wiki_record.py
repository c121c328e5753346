"""The team's pages in the wiki: the sprint's tasks, plan pages, hand-offs of lost members."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from culture.config.listen_policy import is_loopback
from culture.config.team import TeamConfig
from culture.orchestrator.journal.state import TaskStage, TeamState, TeamTask
from culture.wiki.errors import Conflict, NoSuchPage, WikiError
from culture.wiki.names import SPRINT_STATE, plan
from culture.wiki.pages import folder_of
from culture.wiki.queue import QueuedWiki

log = logging.getLogger(__name__)

BEGIN, END = "<!-- tasks: kept by the team -->", "<!-- end of tasks -->"
_TRIES = 5
_TITLE = 80


def wiki_folder(config: TeamConfig) -> Path | None:
    """Return the folder of a team's wiki; None if another machine serves it."""
    url = config.wiki_mcp_url
    if config.wiki_dir is None and url is not None and not is_loopback(urlsplit(url).hostname or ""):
        return None
    return config.wiki_dir or folder_of(config.slug)


class WikiRecord:
    """Writes pages to one team's wiki; failures are logged and stop no work."""

    def __init__(self, wiki: QueuedWiki, author: str) -> None:
        self._wiki = wiki
        self._author = author
        self._turn = asyncio.Lock()

    async def update_sprint(self, state: TeamState) -> None:
        """Update the table of tasks on the sprint page; the rest of the page belongs to the EM."""
        async with self._turn:
            await self._change(SPRINT_STATE, lambda text: _with_tasks(text, state), "the tasks as they stand")

    async def create_plan_page(self, task: TeamTask) -> None:
        """Create a task's plan page with the request; its manager writes the plan there."""
        text = f"# {task.id}\n\nWanted by {task.by}:\n\n{_quoted(task.text)}\n\nBranch: `{task.branch}`\n\n## Plan\n\n"
        try:
            await self._wiki.write(plan(task.id), text, "", self._author, f"{task.id} begins")
        except Conflict:
            pass
        except WikiError as error:
            log.warning("the page of %s was not created: %s", task.id, error)

    async def has_text(self, page: str) -> bool:
        """Return whether a wiki page exists and is not blank."""
        try:
            return bool((await self._wiki.read(page)).text.strip())
        except WikiError:
            return False

    async def replace(self, page: str, text: str, why: str) -> None:
        """Replace the text of a wiki page; ``why`` is the reason noted with the revision."""
        async with self._turn:
            await self._change(page, lambda _: text, why)

    async def catch_up(self) -> None:
        """Write the wiki pages that were queued because an earlier attempt failed."""
        try:
            await self._wiki.drain()
        except WikiError as error:
            log.info("the wiki: %s", error)

    async def _change(self, page: str, change: Callable[[str], str], why: str) -> None:
        for _ in range(_TRIES):
            try:
                current = await self._wiki.read(page)
                text, base = current.text, current.revision
            except NoSuchPage:
                text, base = "", ""
            except WikiError as error:
                log.warning("%s cannot be read: %s", page, error)
                text, base = "", ""
            try:
                await self._wiki.write(page, change(text), base, self._author, why)
                return
            except Conflict:
                continue
            except WikiError as error:
                log.warning("%s was not written: %s", page, error)
                return


def _with_tasks(text: str, state: TeamState) -> str:
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    block = f"{BEGIN}\n{table(state)}\n{END}"
    return f"{head.rstrip()}\n\n{block}{tail or chr(10)}".lstrip()


def table(state: TeamState) -> str:
    """Return a team's tasks and their members as a Markdown table."""
    lines = ["| task | stage | who | what |", "|---|---|---|---|"]
    for task in state.tasks.values():
        who = ", ".join(f"{member.name} ({member.role})" for member in state.team_of(task.id)) or "nobody"
        title = " ".join(task.text.split()).replace("|", "/")[:_TITLE]
        report = f"; {' '.join(task.said.split()).replace('|', '/')[:_TITLE]}" if task.said else ""
        lines.append(f"| {task.id} | {_stage(task)} | {who} | {title}{report} |")
    return "\n".join(lines)


def _stage(task: TeamTask) -> str:
    return f"{task.stage.value}, branch `{task.branch}`" if task.stage is TaskStage.DONE else task.stage.value


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())
