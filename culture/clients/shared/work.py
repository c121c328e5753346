"""The task loop: what is unread becomes one prompt, a prompt becomes a turn, and the turn's end makes it answered."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Literal

from culture.clients.shared import quiet
from culture.clients.shared.closing_text import ClosingText
from culture.clients.shared.completion import Completion
from culture.clients.shared.inbox import ABORTED, Inbox, Mail
from culture.clients.shared.mail_replies import given_up, replies_to, reply_to
from culture.clients.shared.prompts import PRIVATE, Prompt, compose
from culture.clients.shared.turn import COMPACT, Turn
from culture.clients.shared.work_ports import Feeder, Say
from culture.protocol.names import fold, is_channel
from culture.protocol.split import clip
from culture.protocol.text import fact_in_prompt, name_in_prompt
from culture.protocol.vocabulary import UserClass
from culture.runtime import REAL, Runtime

log = logging.getLogger(__name__)

AGAIN = "Its messages come again"
"""What the agent is told of a turn that was cut off, of which nothing is lost."""
_LONGEST_ERROR = 200
_A_MOMENT = 0.1
"""What is over at a time of day is looked at so much later, when it is certainly over."""
PostOutput = Literal["auto", "always", "never"]


class Work:
    """What the agent is given, one thing at a time."""

    def __init__(
        self,
        nick: str,
        inbox: Inbox,
        feeder: Feeder,
        say: Say,
        *,
        post_output: PostOutput,
        quiet_hours: str | None,
        retry_after: float,
        cool_down: float = 0.0,
        may_begin: Callable[[], bool],
        changed: Callable[[], None],
        begun: Callable[[Sequence[Mail]], None] = lambda mails: None,
        tags: Callable[[], Mapping[str, str]] = dict,
        renew: Callable[[], None],
        answered: Callable[[Prompt, Turn], None] = lambda prompt, turn: None,
        completion: Completion,
        further: Callable[[], Sequence[str]] = tuple,
        until: Callable[[], float | None] = lambda: None,
        runtime: Runtime = REAL,
    ) -> None:
        self._nick = nick
        self._inbox = inbox
        self._feeder = feeder
        self._say = say
        self._post_output = post_output
        self._quiet_hours = quiet_hours
        self._retry_after = retry_after
        self._cool_down = cool_down
        self._may_begin = may_begin
        self._changed = changed
        self._begun = begun
        self._tags = tags
        self._renew = renew
        self._answered = answered
        self._completion = completion
        self._further = further
        self._until = until
        self._now = runtime.local
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._commands: deque[str] = deque()
        self._command: str | None = None
        self._turn = 0
        self._unsettled = 0  # a turn whose end could not be written down
        self._closing = ClosingText()
        self._note = ""
        self._told = ""  # the note of the present prompt
        self._not_before = 0.0
        self._cool_at = 0.0  # until then agents alone begin no turn
        self._aborted = False
        self._is_unwanted = False  # aborted by the answer to a question: the agent ends its turn by itself
        self._left_open = ""  # why the present turn ends without an end of its task
        self._cut_off = ""  # why the present turn is broken off
        self._parked = False  # until a time that is known
        self.prompt: Prompt | None = None
        self.last: Prompt | None = None
        """The present prompt, or else the one before."""

    def start(self) -> None:
        """Begin to give out work."""
        self._task = asyncio.create_task(self._run(), name=f"work of {self._nick}")

    async def stop(self) -> None:
        """Give out nothing more."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def wake(self) -> None:
        """Something has changed: look whether there is something to do."""
        self._wake.set()

    def command(self, command: str) -> None:
        """Have the agent do this when it has nothing else to do, before any message."""
        if command not in self._commands:
            self._commands.append(command)
        self.wake()

    def tell(self, note: str) -> None:
        """The agent learns this with its next prompt."""
        if note not in self._note:
            self._note = f"{self._note}\n{note}" if self._note else note

    @property
    def turn(self) -> int:
        """The number of the present turn, or of the last."""
        return self._turn

    def said(self, place: str, turn: int) -> None:
        """The agent has said something there itself, which it began to say in this turn."""
        # It may have taken longer than the turn; of the next one it is no answer.
        if turn == self._turn:
            self._closing.speak(place)

    def did(self, blocks: Sequence[Mapping[str, object]]) -> None:
        """The agent said or did something in the present turn."""
        self._closing.take(blocks)

    def answers(self, place: str) -> dict[str, str]:
        """The tag of what the agent says in a place: a reply to the message from there that it works on."""
        prompt = self.prompt
        return replies_to(prompt) if prompt is not None and fold(prompt.target) == fold(place) else {}

    @property
    def busy(self) -> bool:
        """Whether a turn is under way."""
        return self.prompt is not None or self._command is not None

    @property
    def is_quiet(self) -> bool:
        """Whether messages wait for the end of the quiet hours."""
        return quiet.is_quiet(self._quiet_hours, self._now())

    async def ended(self, turn: Turn, *, overspent: bool = False) -> None:
        """The agent has finished its turn, or was ``overspent`` and broken off in it."""
        prompt, command = self.prompt, self._command
        self.prompt = self._command = None
        self._cool()
        self._unsettled = self._turn if prompt is not None else 0
        try:
            if prompt is None or turn.full:
                self._inbox.spend(turn.tokens, turn.cost_usd)
            if turn.full:
                self._hand_over(prompt)
            elif prompt is not None:
                self._settle(prompt, turn, overspent=overspent)
            self._unsettled = 0
            if command is not None and turn.error:
                self._refused(command, turn)
            elif (command == COMPACT or turn.compacted) and not turn.full:
                self._restate()
        finally:
            self._changed()
            self.wake()

    def broken(self, outcome: str) -> list[Mail]:
        """The agent died: what it worked on comes again; what is given up is returned, and its senders are told."""
        prompt, self.prompt, self._command = self.prompt, None, None
        self._cool()
        if prompt is None:
            return []
        self._unsettled = self._turn
        self.tell(self._told)
        if self._aborted:
            self._drop(prompt)
            lost = []
        else:
            lost = self._break(outcome, outcome, prompt, outcome)
        self._unsettled = 0
        return lost

    def abort(self) -> None:
        """The present task is not wanted any more: what its turn still says is not posted."""
        self._aborted = self.prompt is not None

    def mark_aborted(self) -> None:
        """A person answered abort: the agent may still say how it ends its turn, and that is no finished task."""
        self._is_unwanted = self.prompt is not None

    def leave_open(self, why: str) -> None:
        """The present task cannot be finished in its turn, which goes on to its end: its messages come again."""
        self._left_open = why

    def cut_off(self, why: str) -> None:
        """The present turn is broken off; its messages do not come again, and the agent is told why."""
        self._cut_off = why

    async def _run(self) -> None:
        patience: float | None = None
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._wake.wait()
            self._wake.clear()
            try:
                patience = await self._next()
            except Exception:
                log.exception("%s: no prompt could be given", self._nick)
                # Perhaps the disk is full: look again, though nothing else happens.
                patience = self._retry_after
                self._not_before = asyncio.get_running_loop().time() + patience

    async def _next(self) -> float | None:
        """Begin what is to be done now; else after how long to look again, None where nothing changes by itself."""
        was_parked, parked = self._parked, self._until()
        self._parked = parked is not None
        if was_parked and not self._parked:
            self._changed()  # everybody sees it, though nothing waits for it
        patience = None if parked is None else parked + _A_MOMENT
        if self.busy or not self._feeder.ready or not self._may_begin():
            return patience
        if self._unsettled:
            self._inbox.broken(self._unsettled, "its end could not be noted", blamed=False)
            self._unsettled = 0
        if self._commands:
            self._command = self._commands.popleft()
            await self._feeder.feed(self._command)
            self._changed()
        elif self._inbox.waiting:
            # Whether they wait and how long is one look at the clock: what ends between two would never begin.
            now = asyncio.get_running_loop().time()
            if rest := self._rest(now, self._now()):
                return rest
            await self._begin(self._inbox.next(people_first=now < self._cool_at))
        return patience

    def _rest(self, now: float, moment: datetime) -> float:
        """How long messages that are here still wait: for the end of the quiet hours, of a pause, or of a while."""
        pauses = [self._not_before]
        if now < self._cool_at and not self._inbox.is_called_by_people:
            pauses.append(self._cool_at)
        rest = max(0.0, max(pauses) - now)
        if self._quiet_hours is not None and quiet.is_quiet(self._quiet_hours, moment):
            rest = max(rest, quiet.seconds_left(self._quiet_hours, moment) + _A_MOMENT)
        return rest

    def _cool(self) -> None:
        """A turn is over: what agents say within a while becomes one prompt, unless a person calls."""
        self._cool_at = asyncio.get_running_loop().time() + self._cool_down

    async def _begin(self, mails: Sequence[Mail]) -> None:
        for note in self._further():
            self.tell(note)
        events = self._completion.tell(mails[0].place)
        prompt = compose(mails, "\n".join(filter(None, [*events, self._note])))
        if task := self._completion.continued(mails):
            prompt = replace(prompt, task=task)
        self.last = prompt
        self._turn = self._inbox.begin(mails, prompt.title)
        self.prompt, self._told, self._note, self._aborted = prompt, self._note, "", False
        self._left_open = self._cut_off = ""
        self._closing.begin()
        self._is_unwanted = False
        self._begun(mails)
        self._changed()
        await self._feeder.feed(prompt.text)

    def _settle(self, prompt: Prompt, turn: Turn, *, overspent: bool) -> None:
        if self._aborted:
            self._drop(prompt, turn.tokens, turn.cost_usd)
            return
        if turn.limited_until is not None:
            self._inbox.spend(turn.tokens, turn.cost_usd)
            with self._inbox.at_once():
                self._inbox.broken(self._turn, "usage limit reached", blamed=False)
                self._completion.cut(prompt, "the provider's usage limit was reached", AGAIN)
            return
        if overspent and turn.interrupted:
            self.tell(self._told)
            self._inbox.spend(turn.tokens, turn.cost_usd)
            self._break("budget spent", "it was cut off too often", prompt, "your budget was spent", blamed=None)
            return
        if turn.error and not turn.interrupted:
            self._failed(prompt, turn)
            return
        # Killed in between, an answer that was said would be given once more, or one that was not would be missing.
        with self._inbox.at_once():
            if text := self._closing_text(prompt, turn):
                self._say(prompt.target, text, tags={**replies_to(prompt), **self._tags()})
            if self._left_open and not (turn.interrupted or prompt.mails[0].is_errand):
                self._inbox.spend(turn.tokens, turn.cost_usd)
                self._break("not finished", "it was cut off too often", prompt, self._left_open, blamed=None)
                return
            self._answered(prompt, turn)
            outcome = ABORTED if self._is_unwanted else "interrupted" if turn.interrupted else "done"
            self._inbox.end(self._turn, outcome, turn.tokens, turn.cost_usd)
            if self._is_unwanted:
                self._completion.dropped(prompt)
            else:
                self._completion.ended(prompt, interrupted=turn.interrupted)
            if turn.interrupted and self._cut_off:
                self._completion.cut(prompt, self._cut_off, "Its messages do not come again")

    def _closing_text(self, prompt: Prompt, turn: Turn) -> str:
        """What is posted at the end of a turn; empty when nothing is."""
        if turn.interrupted or self._post_output == "never":
            return ""
        if self._post_output == "auto" and self._closing.has_spoken(prompt.target):
            return ""
        return self._closing.text(turn.text)

    def _failed(self, prompt: Prompt, turn: Turn) -> None:
        """The model could not be asked: once more after a while, then the sender is told."""
        log.error("%s: the turn failed: %s", self._nick, turn.error)
        why = clip(turn.error.splitlines()[0], _LONGEST_ERROR)
        self.tell(self._told)
        self._inbox.spend(turn.tokens, turn.cost_usd)
        if not self._break(f"error: {why}", why):
            self._say(prompt.target, f"[ERROR] {why}; I try once more.", notice=True)
        self._not_before = asyncio.get_running_loop().time() + self._retry_after

    def _refused(self, command: str, turn: Turn) -> None:
        """A command was not carried out; the agent goes on as before."""
        log.error("%s: %s failed: %s", self._nick, command, turn.error)
        if not turn.full:
            self.tell(f"(your {command} failed: {fact_in_prompt(turn.error)})")

    def _hand_over(self, prompt: Prompt | None) -> None:
        """The session is full: a new one begins, and is told what the journal knows of the old one."""
        if prompt is not None and self._aborted:
            self._drop(prompt)
        elif prompt is not None:
            self._break("context full", "it does not fit into my context")
        done = [
            f"  {at:%H:%M} in {name_in_prompt(place)}: {_told(place, task)} ({fact_in_prompt(outcome)})"
            for at, place, task, outcome in self._inbox.journal(10)
        ]
        self.tell(
            "\n".join(["(your last session was full, and this is a new one; what you were last given:", *done, ")"])
        )
        self._renew()

    def _drop(self, prompt: Prompt, tokens: int = 0, cost_usd: float = 0.0) -> None:
        """A person has aborted the task; another agent that waits for an answer waits no longer."""
        with self._inbox.at_once():
            self._inbox.end(self._turn, ABORTED, tokens, cost_usd)
            self._completion.dropped(prompt)
            called = [
                mail
                for mail in prompt.mails
                if mail.kind is not UserClass.HUMAN and not (mail.is_errand or mail.is_own)
            ]
            self._give_up(called, "a person has aborted it")

    def _break(
        self, outcome: str, why: str, cut: Prompt | None = None, told: str = "", *, blamed: bool | None = True
    ) -> list[Mail]:
        """The turn has no end; what is given up with it is returned, and its senders are told.

        The agent is ``told`` why the prompt was ``cut`` off. Killed in between, nobody would ever tell them.
        """
        with self._inbox.at_once():
            lost = self._give_up(self._inbox.broken(self._turn, outcome, blamed=blamed), why)
            if cut is not None:
                self._completion.cut(cut, told, "Nobody expects an answer any more" if lost else AGAIN)
            return lost

    def _give_up(self, lost: list[Mail], why: str) -> list[Mail]:
        for mail in lost:
            self._say(mail.place, given_up(mail, why), notice=True, tags=reply_to(mail))
        return lost

    def _restate(self) -> None:
        """What a shortened context must not have lost."""
        last = "".join(
            f' The last task was "{_told(place, task)}" from {name_in_prompt(place)}.'
            for _, place, task, _ in self._inbox.journal(1)
        )
        self.tell(f"(your context was shortened: you are {self._nick} on IRC, and answer where you are asked.{last})")


def _told(place: str, task: str) -> str:
    """A task as the prompt of any place may name it."""
    return fact_in_prompt(task) if is_channel(place) or not place else PRIVATE
