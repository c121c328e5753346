"""Leave to use a tool: asked of people when nobody has given it for good."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from culture.clients.shared.notes import Notes
from culture.clients.shared.prompts import Prompt
from culture.clients.shared.questions import file_changes, permissions
from culture.clients.shared.questions.board import Questions, TooManyQuestions
from culture.clients.shared.questions.model import Answer, Outcome
from culture.clients.shared.questions.tool_use import ToolUse, describe
from culture.clients.shared.turn import Permit
from culture.protocol.names import fold, is_channel
from culture.protocol.vocabulary import UserClass, WellKnownChannel
from culture.transport import NotSent

# An agent that had to ask before it may ask could not ask. Without -P it would run what lies in its folder under our
# name, which it may have written itself.
OWN = tuple(f"Bash(python3 -P -m culture.clients.{where}.skill.irc_client:*)" for where in ("shared", "claude"))
Channels = Callable[[], list[str]]
_CHANGED = "the file has changed since people were asked, so they have approved another change: look at it, ask again"
_NO_ANSWER = {"pause": "you are paused, so end your turn", "abort": "the task is aborted"}


class Leave:
    """Asks whether the agent may use a tool."""

    def __init__(
        self,
        questions: Questions,
        notes: Notes,
        directory: Path,
        prompt: Callable[[], Prompt | None],
        channels: Channels,
    ) -> None:
        self._questions = questions
        self._notes = notes
        self._directory = directory
        self._prompt = prompt
        self._channels = channels

    async def permit(self, tool: str, given: Mapping[str, object]) -> Permit:
        """Whether it may; never by silence."""
        patterns = (*OWN, *self._notes.allowed)
        if any(permissions.allows(pattern, tool, given, self._directory) for pattern in patterns):
            return Permit(True)
        use = await self._described(tool, given)
        try:
            place = self.place()
            answer = await self._questions.ask(place, use.text, None, permissions.OPTIONS, tool, detail=use.detail)
        except (NotSent, TooManyQuestions) as refusal:
            return Permit(False, f"nobody can be asked: {refusal}")
        if answer.outcome is Outcome.ANSWERED:
            if not self._remember(answer, tool):
                self._questions.pass_on(answer)
            if await self._described(tool, given) != use:
                return Permit(False, _CHANGED)
        return _permit(answer)

    async def _described(self, tool: str, given: Mapping[str, object]) -> ToolUse:
        """The use as people see it; files are compared in a thread, since a large one takes a while."""
        if tool in file_changes.TOOLS:
            return await asyncio.to_thread(describe, tool, given, self._directory)
        return describe(tool, given, self._directory)

    def _remember(self, answer: Answer, tool: str) -> bool:
        """Keep what a person allows for good; whether it was that."""
        always = permissions.read_always(answer.text or "", tool)
        if always is None or always[1]:
            return False
        self._notes.allowed = (*self._notes.allowed, permissions.pattern_of(answer.text or ""))
        return True

    def place(self) -> str:
        """Where the task came from: its channel, or the person who gave it in private; else the general one."""
        prompt = self._prompt()
        if prompt is not None:
            first = prompt.mails[0] if prompt.mails else None
            if is_channel(prompt.target) or (first is not None and first.private and first.kind is UserClass.HUMAN):
                return prompt.target
        here = self._channels()
        general = WellKnownChannel.GENERAL.value
        return general if fold(general) in map(fold, here) or not here else here[0]


def _permit(answer: Answer) -> Permit:
    who = f" by {answer.by}" if answer.by else ""
    said = f': "{answer.text}"' if answer.text else ""
    match answer.outcome:
        case Outcome.ANSWERED:
            return Permit(True)
        case Outcome.ABORTED:
            return Permit(False, f"aborted{who}{said}", interrupt=True)
        case Outcome.TIMED_OUT:
            then = _NO_ANSWER.get(answer.action or "", "that counts as no")
            return Permit(False, f"nobody answered in time; {then}", interrupt=answer.action == "abort")
        case _:
            return Permit(False, f"denied{who}{said}")
