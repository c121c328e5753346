"""Claude Code's background work: commands, sub-agents and wake-ups, as its messages tell of them.

When such work has something to tell, Claude Code begins a turn by itself, or puts the news into the turn that runs.
Its ``UserPromptSubmit`` hook is asked first, before any request to the model. The news is kept as a message to the
agent and then refused: it comes again as a prompt of the daemon, in the place where the work was begun.
"""

import re

from claude_agent_sdk import AssistantMessage, SystemMessage, TaskStartedMessage, ToolUseBlock
from claude_agent_sdk.types import Message

from culture.clients.shared.background import BackgroundWork, news_key
from culture.clients.shared.turn import News

WAKING = frozenset({"ScheduleWakeup", "CronCreate"})
"""The tools by which Claude has itself woken with a text."""
COMMAND = "local_bash"
"""The type of a task that is a command, and no sub-agent."""


def note(background: BackgroundWork, message: Message) -> None:
    """Take note of what a message tells of background work."""
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
    """What Claude Code would begin a turn for, from the text of the prompt that it makes of it."""
    key = news_key(prompt_id, text)
    if not text.lstrip().startswith(_NOTIFICATION):
        return News(key, background.place_of_wakeup(text), f"the time has come for which you had planned this: {text}")
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(text):
        # The first counts: a result is written by a sub-agent, and may hold anything.
        fields.setdefault(name, value.strip())
    call = fields.get("tool-use-id") or background.call_of(fields.get("task-id", ""))
    place = background.place_of(call)
    if text.count(_NOTIFICATION) > 1 or "summary" not in fields:
        return News(key, place, text)
    told = [fields["summary"], *(fields[name] for name in ("event", "result") if name in fields)]
    if file := fields.get("output-file"):
        told.append(f"(its output: {file})")
    return News(key, place, "\n".join(told))
