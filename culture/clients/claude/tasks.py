"""Track Claude Code's background work: commands, sub-agents and wake-ups.

When such work ends, Claude Code begins a turn by itself, or adds the news to the running turn. It first calls our
``UserPromptSubmit`` hook, before any request to the model. The hook stores the news as a message to the agent and
blocks the turn; the daemon then sends the news as a prompt, with the channel in which the work was begun.
"""

import re

from claude_agent_sdk import AssistantMessage, SystemMessage, TaskStartedMessage, ToolUseBlock
from claude_agent_sdk.types import Message

from culture.clients.shared.background import BackgroundWork, news_key
from culture.clients.shared.turn import News

WAKING = frozenset({"ScheduleWakeup", "CronCreate"})
"""Tools with which Claude schedules a prompt to itself."""
COMMAND = "local_bash"
"""Type of a task that is a command, not a sub-agent."""


def note(background: BackgroundWork, message: Message) -> None:
    """Update ``background`` (commands, sub-agents, wake-ups) from a message of Claude Code."""
    match message:
        case AssistantMessage(content=blocks, parent_tool_use_id=parent):
            for block in blocks:
                if isinstance(block, ToolUseBlock):
                    background.called(block.id, parent)
                    if block.name in WAKING:
                        background.scheduled(str(block.input.get("prompt", "")), block.id)
        case TaskStartedMessage(task_id=task, tool_use_id=str(call)):
            background.started(task, call)
        case SystemMessage(subtype="background_tasks_changed", data={"tasks": list(tasks)}):
            agents = (str(each["task_id"]) for each in tasks if each.get("task_type") != COMMAND)
            background.runs((str(each["task_id"]) for each in tasks), agents)


_NOTIFICATION = "<task-notification>"
_FIELD = re.compile(r"<(task-id|tool-use-id|output-file|summary|event|result)>(.*?)</\1>", re.DOTALL)


def news(background: BackgroundWork, text: str, prompt_id: str) -> News:
    """Return the news in a prompt that Claude Code generates when background work ends.

    News is a report of such work, to be given to the agent later. ``text``: the prompt; ``prompt_id``: Claude Code's
    id of it, by which news is stored once.
    """
    key = news_key(prompt_id, text)
    if not text.lstrip().startswith(_NOTIFICATION):
        return News(key, background.place_of_wakeup(text), f"the time has come for which you had planned this: {text}")
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(text):
        # The first match counts: a result is written by a sub-agent and may contain any text.
        fields.setdefault(name, value.strip())
    call = fields.get("tool-use-id") or background.call_of(fields.get("task-id", ""))
    place = background.place_of(call)
    if text.count(_NOTIFICATION) > 1 or "summary" not in fields:
        return News(key, place, text)
    told = [fields["summary"], *(fields[name] for name in ("event", "result") if name in fields)]
    if file := fields.get("output-file"):
        told.append(f"(its output: {file})")
    return News(key, place, "\n".join(told))
