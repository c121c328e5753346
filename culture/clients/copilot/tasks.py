"""Track Copilot's background commands.

When a command ends, Copilot begins a turn by itself. It first calls our prompt hook, before any request to the model.
The hook stores the news as a message to the agent and blocks the turn; the daemon then sends the news as a prompt. If a
turn is running, Copilot adds the news to it without calling the hook.
"""

import re
from collections.abc import Mapping

from copilot.session_events import (
    AssistantMessageData,
    SystemNotificationData,
    SystemNotificationShellCompleted,
    ToolExecutionCompleteData,
)

from culture.clients.shared.background import BackgroundWork, news_key
from culture.clients.shared.turn import News

_SHELL = re.compile(r"shellId: ([^\s>)]+)")
_ENDED = re.compile(r"shellId: [^\s>)]+\)? (has )?(completed|been stopped|stopped|exited|failed)")
_NOTIFICATION = re.compile(r"</?system_notification>")


class Shells:
    """Tracks the shell commands that Copilot runs in the background."""

    def __init__(self, background: BackgroundWork) -> None:
        self._background = background

    def note(self, said: object) -> None:
        """Update the list of background commands; ``said``: the data of an event of Copilot."""
        match said:
            case AssistantMessageData(tool_requests=calls, parent_tool_call_id=parent) if calls:
                for call in calls:
                    self._background.called(call.tool_call_id, parent)
            case SystemNotificationData(kind=SystemNotificationShellCompleted(shell_id=shell)):
                self._end(shell)
            case ToolExecutionCompleteData(tool_call_id=call, result=result) if result is not None:
                self._result(call, result.content or "")

    def news(self, given: Mapping[str, object]) -> News:
        """Return the news in a prompt that Copilot generates when a background command ends.

        News is a report of such a command, to be given to the agent later. ``given``: the input of Copilot's prompt
        hook.
        """
        text = _NOTIFICATION.sub("", str(given.get("prompt", ""))).strip()
        shell = _SHELL.search(text)
        if shell is not None:
            self._end(shell[1])
        place = self._background.place_of(self._background.call_of(shell[1] if shell is not None else ""))
        return News(news_key(str(given.get("timestamp", "")), text), place, text)

    def _result(self, call: str, output: str) -> None:
        if (shell := _SHELL.search(output)) is None:
            return
        if _ENDED.search(output):
            self._end(shell[1])
        elif shell[1] not in self._background.running:
            self._background.started(shell[1], call)
            self._background.runs([*self._background.running, shell[1]])

    def _end(self, shell: str) -> None:
        self._background.runs(each for each in self._background.running if each != shell)
