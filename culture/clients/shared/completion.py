"""Whether a task is complete when its turn ends: not while anything of it is open, unread or in the background.

A turn may end and its task go on: a question is open whose answer comes as a prompt, or a command runs in the
background whose end does. Such a prompt continues the task, with its name, and its end completes it.
"""

from collections.abc import Callable, Sequence

from culture.clients.shared.inbox import Mail
from culture.clients.shared.prompts import Prompt
from culture.clients.shared.questions import Question
from culture.clients.shared.unfinished_work import TaskReference, UnfinishedWork


class Completion:
    """Follows the tasks of one agent from turn to turn, and announces those that are complete."""

    def __init__(
        self,
        unfinished: UnfinishedWork,
        announce: Callable[[Prompt], None],
        *,
        open_questions: Callable[[], Sequence[Question]],
        question: Callable[[int], Question | None],
        unread_in: Callable[[str], int],
        in_background: Callable[[str], int],
        is_held: Callable[[], bool],
        note: Callable[[], str],
    ) -> None:
        self._unfinished = unfinished
        self._announce = announce
        self._open_questions = open_questions
        self._question = question
        self._unread_in = unread_in
        self._in_background = in_background
        self._is_held = is_held
        self._note = note

    def tell(self, place: str) -> list[str]:
        """What a prompt of a place tells of the work that was cut off, and of open questions."""
        events = self._unfinished.tell(place)
        return [*events, *filter(None, [self._note()])] if events else []

    def continued(self, mails: Sequence[Mail]) -> str:
        """The task that these messages continue, as everybody may know it; empty where they begin one."""
        first = mails[0]
        question = self._question(first.question) if first.question else None
        if question is not None and not question.is_open:
            return question.task
        unfinished = self._unfinished.unfinished(first.place) if first.is_own else None
        return unfinished.task if unfinished is not None else ""

    def cut(self, prompt: Prompt, why: str, then: str) -> None:
        """The turn of a prompt was cut off, and so was the prompt itself; ``then`` is what becomes of its messages."""
        self._unfinished.note(f"your turn was cut off: {why}. {then}", TaskReference.of(prompt))

    def ended(self, prompt: Prompt, *, interrupted: bool) -> None:
        """A turn has ended: announce its task, or keep in mind that it goes on."""
        self._unfinished.settle()
        if interrupted or not prompt.target:
            return
        if prompt.is_between_agents or not self._is_of_a_task(prompt.mails[0]):
            return
        if self._goes_on(prompt):
            self._unfinished.put_off(TaskReference.of(prompt))
        else:
            self._unfinished.finish(prompt.target)
            self._announce(prompt)

    def dropped(self, prompt: Prompt) -> None:
        """A person has aborted the task of a prompt."""
        self._unfinished.settle()
        self._unfinished.finish(prompt.target)

    def _is_of_a_task(self, first: Mail) -> bool:
        """Whether a message begins a task or continues one; a wake-up long after its end does neither."""
        return not first.is_own or first.question > 0 or self._unfinished.unfinished(first.place) is not None

    def _goes_on(self, prompt: Prompt) -> bool:
        asks = any(not each.tool and each.task == prompt.task for each in self._open_questions())
        here = self._unread_in(prompt.target) + self._in_background(prompt.target)
        return asks or self._is_held() or here > 0
