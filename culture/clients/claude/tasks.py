"""Claude Code's background work: commands, sub-agents and wake-ups, as its messages tell of them."""

from claude_agent_sdk import AssistantMessage, SystemMessage, TaskStartedMessage, ToolUseBlock
from claude_agent_sdk.types import Message

from culture.clients.shared.background import BackgroundWork

WAKING = frozenset({"ScheduleWakeup", "CronCreate"})
"""The tools by which Claude has itself woken with a text."""


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
            background.runs(str(each["task_id"]) for each in tasks)
