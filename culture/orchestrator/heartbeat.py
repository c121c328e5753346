"""The heartbeat: checks each member's process, usage, context, missed messages, idleness.

Whether a member is idle says a small model, without tools, session or memory (``judge``).
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from culture.clients.shared.backends import backend, supervisor_class
from culture.clients.shared.supervisor import Supervisor, SupervisorSetup
from culture.clients.shared.turn import chosen_model
from culture.config.team import RoleConfig
from culture.orchestrator.budget import Budget
from culture.orchestrator.errors import DaemonStays, NoAnswer
from culture.orchestrator.inbound import CHECK
from culture.orchestrator.journal.state import TeamMember, TeamTask
from culture.orchestrator.members.hiring import IN_TURN, MemberHiring
from culture.orchestrator.members.members import Fill
from culture.orchestrator.members.recovery import MemberRecovery
from culture.orchestrator.members.shift import Shift
from culture.orchestrator.tasks.ledger import publish_task
from culture.orchestrator.tasks.task_checks import STANDSTILL, OverlapWatch, StandstillWatch
from culture.orchestrator.team_context import TeamContext
from culture.protocol.text import Profile, clean

log = logging.getLogger(__name__)

IDLE_QUESTION = (
    "Here is the last 5 minutes of IRC activity for agent '{nick}'. Is it idle? Respond with only: yes or no.\n\n"
    "{activity}"
)
CHECK_IN = f"{CHECK} If there is something for you, see to it; if not, say nothing."
WRAP_UP = """Your context is {full} % full. Bring what you are at to an end and commit it; begin nothing new. Somebody
with a fresh context takes over soon."""
SOON = 0.5
"""Delay (s) before reading a member's usage after it spoke."""
AGAIN = 2.0
"""Interval (s) of further readings while its turn lasts."""
Judge = Callable[[str], Awaitable[str]]
PATIENCE = 60.0
"""Seconds for the model that judges whether a member is idle."""
SYSTEM_PROMPT = "You look after a team of AI agents. Answer the question with the one word that it asks for."


@dataclass
class Pulse:
    """What the heartbeat stores of one member between two checks, such as when it last worked."""

    busy_at: float
    """When it was last busy, or was first checked."""
    step: int = 0
    """Number of checks in a row at which it was idle."""
    next_at: float = 0.0
    """Time of the next idle check."""
    silent: int = 0
    """Number of checks in a row at which its daemon did not answer."""


class Heartbeat:
    """Checks all members of the team periodically, and those who wrote a message soon after it."""

    def __init__(
        self,
        context: TeamContext,
        hiring: MemberHiring,
        budget: Budget,
        shift: Shift,
        recovery: MemberRecovery,
        resume_pending: Callable[[], None],
        judge: Judge | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._context = context
        self._hiring = hiring
        self._budget = budget
        self._shift = shift
        self._recovery = recovery
        self._overlaps = OverlapWatch(context, hiring)
        self._standstill = StandstillWatch(context, hiring)
        self._resume_pending = resume_pending
        self._judge = judge
        self._clock = clock
        self._pulses: dict[str, Pulse] = {}
        self._due = clock() + context.config.heartbeat
        self._spoke = asyncio.Event()
        self._speakers: set[str] = set()

    def note_activity(self, nick: str) -> None:
        """Record that the user ``nick`` wrote a message, so that its usage is read within seconds."""
        self._speakers.add(nick)
        self._spoke.set()

    async def run(self) -> None:
        """Check all members at each heartbeat, and each author of a message soon after it.

        Runs until it is cancelled.
        """
        while True:
            if self._clock() >= self._due:
                try:
                    await self.beat()
                finally:
                    self._due = self._clock() + self._context.config.heartbeat
            try:
                async with asyncio.timeout(max(0.0, self._due - self._clock())):
                    await self._spoke.wait()
                    await asyncio.sleep(SOON)
            except TimeoutError:
                continue
            await self.check_speakers()

    async def check_speakers(self) -> None:
        """Read the usage of all members who wrote since the previous call, and enforce the budgets."""
        self._spoke.clear()
        speakers, self._speakers = self._speakers, set()
        members = [member for nick in speakers if (member := self._context.store.state.member(nick)) is not None]
        active = [member for member in members if member.hired and not member.leaving]
        await asyncio.gather(*(self._safely(member, self._check_usage) for member in active))
        await self._budget.enforce()

    async def note_usage(self, member: TeamMember) -> None:
        """Read a member's usage (tokens, dollars), also within a turn, and enforce the budgets."""
        now = self._context.store.state.member(member.nick)
        if now is not None and now.hired and not now.leaving:
            await self._read_usage(now)
            await self._budget.enforce()

    async def _check_usage(self, member: TeamMember) -> None:
        status = await self._read_usage(member)
        if status is not None and status.get("state") in IN_TURN:
            # The full usage of a turn is known when it is over.
            asyncio.get_running_loop().call_later(AGAIN, self.note_activity, member.nick)

    async def beat(self) -> None:
        """Run one heartbeat: check members, budgets, tasks and overlaps; resume unfinished acts.

        An act is a step that the journal records as begun and not done. Notices and wiki pages that could not be sent
        or written before are tried again.
        """
        context = self._context
        self._resume_pending()
        members = [member for member in context.store.state.members.values() if member.hired and not member.leaving]
        await asyncio.gather(*(self._safely(member, self._check_member) for member in members))
        await self._budget.enforce()
        for task in context.store.state.live_tasks():
            try:
                await self._notice_standstill(task)
                await publish_task(context, task.id)
            except Exception:
                # One broken task must not stop the others.
                log.exception("the check of task %s failed", task.id)
        await self._overlaps.check()
        await context.wiki.catch_up()
        await context.rooms.catch_up()

    async def _safely(self, member: TeamMember, check: Callable[[TeamMember], Awaitable[None]]) -> None:
        try:
            await check(member)
        except Exception:
            # One broken member must not stop the check of the others' budgets.
            log.exception("the check of %s failed", member.nick)

    async def _check_member(self, member: TeamMember) -> None:
        if self._shift.is_open(member.nick):
            return
        if not self._context.daemons.is_running(member.nick):
            await self._recovery.bring_back(member, "its daemon is gone")
            return
        status = await self._read_usage(member)
        pulse = self._pulse(member)
        if status is None or status.get("state") != "idle" or status.get("unread"):
            pulse.busy_at = self._clock()
        if status is None:
            pulse.silent += 1
            if pulse.silent >= self._context.config.limits.attempts:
                pulse.silent = 0
                try:
                    await self._context.daemons.stop(member.nick)
                except DaemonStays as why:
                    await self._context.complain(f"stays {member.nick}", str(why))
                    return
                await self._recovery.bring_back(member, "its daemon does not answer")
            return
        pulse.silent = 0
        if status.get("state") == "crashed":
            await self._recovery.replace(member, "its program does not run")
        elif self._budget.is_parked(member):
            await self._budget.pause_if_parked(member)
        elif not self._shift.is_open(member.nick):
            await self._wake_if_missed(member, status)
            try:
                await self._hiring.catch_up(member.nick)
            except NoAnswer as why:
                log.info("%s: %s", member.nick, why)
            if self._context.config.idle_check == "model":
                await self._check_in_if_idle(member, status, pulse)

    async def _read_usage(self, member: TeamMember) -> Mapping[str, Any] | None:
        """Read a member's usage and check how full its context is; return its daemon's status.

        The status is the daemon's answer to a ``status`` request; None if the daemon does not answer.
        """
        try:
            status = await self._context.read_usage(member)
        except NoAnswer as why:
            log.info("%s: %s", member.nick, why)
            return None
        if (now := self._context.store.state.member(member.nick)) is not None:
            await self._check_context(now)
        return status

    async def _check_context(self, member: TeamMember) -> None:
        tracker = self._context.handle(member).session.context_tracker
        if self._shift.is_open(member.nick) or self._budget.is_parked(member):
            return
        if tracker.fill is Fill.SHIFT:
            self._shift.begin(member, f"the context is {tracker.pct:.0f} % full")
        elif tracker.fill is Fill.WARN and not member.wrapping_up:
            key = f"wrap-{member.order_key}-{self._context.store.state.shifts}"
            try:
                await self._hiring.give(member.nick, key, WRAP_UP.format(full=round(tracker.pct)), wrap_up=True)
            except NoAnswer as why:
                log.info("%s was not warned: %s", member.nick, why)

    def _pulse(self, member: TeamMember) -> Pulse:
        return self._pulses.setdefault(member.nick, Pulse(self._clock()))

    async def _notice_standstill(self, task: TeamTask) -> None:
        if not self._standstill.applies_to(task):
            return
        pulses = [self._pulse(member) for member in self._context.store.state.team_of(task.id)]
        since = max(pulse.busy_at for pulse in pulses)
        if self._clock() - since >= STANDSTILL and await self._standstill.report(task, since):
            for pulse in pulses:
                # Whoever was prompted gets the same time again to act.
                pulse.busy_at = self._clock()

    async def _wake_if_missed(self, member: TeamMember, status: Mapping[str, Any]) -> None:
        """Prompt a member to read messages that it missed while it was disconnected.

        Messages that arrive late start no turn themselves. ``status``: the daemon's answer to a ``status`` request,
        which counts them.
        """
        stale = int(status.get("stale", 0))
        if not stale or status.get("state") in IN_TURN:
            return
        last = (status.get("last_message") or {}).get("msgid", "")
        text = f"{CHECK} {stale} messages came while you were away."
        await self._hiring.tell(member.nick, f"missed-{member.nick}-{last}-{stale}", text)

    async def _check_in_if_idle(self, member: TeamMember, status: Mapping[str, Any], pulse: Pulse) -> None:
        """Prompt a member to check its channels if the idle judge, a small model, judges it idle.

        The time to the next such prompt grows with each one while the member stays idle (``heartbeat_backoff`` in
        team.yaml). ``status``: the answer of the member's daemon to a ``status`` request; ``pulse`` counts the
        prompts.
        """
        if status.get("state") != "idle":
            pulse.step, pulse.next_at = 0, 0.0
            return
        if self._judge is None or self._clock() < pulse.next_at:
            return
        if not await self.is_idle(member.nick):
            pulse.step, pulse.next_at = 0, 0.0
            return
        backoff = self._context.config.heartbeat_backoff
        pulse.next_at = self._clock() + backoff[min(pulse.step, len(backoff) - 1)]
        pulse.step += 1
        key = f"idle-{member.nick}-{self._context.store.state.number}"
        await self._hiring.tell(member.nick, key, CHECK_IN)

    async def is_idle(self, nick: str) -> bool:
        """Return whether the idle judge, a small model, judges a member idle; False without answer."""
        assert self._judge is not None
        activity = clean(self._context.rooms.recent_lines(nick), Profile.MODEL) or "(nothing)"
        try:
            verdict = await self._judge(IDLE_QUESTION.format(nick=nick, activity=activity))
        except Exception as error:
            log.warning("the idle check of %s failed: %s", nick, error)
            return False
        return verdict.strip().strip(".!").lower() == "yes"


def judge(role: RoleConfig, nick: str, directory: Path) -> Judge:
    """Return a function that asks the role's model a question and returns the model's answer.

    ``nick``: names the judge in log messages; ``directory``: the folder in which the model's program runs. Raises
    ``NoBackend`` if the role's backend is unknown. The returned function raises ``NoAnswer`` after a timeout.
    """
    kind = backend(role.agent)
    supervisor_type = supervisor_class(kind)
    if not issubclass(supervisor_type, Supervisor):
        raise TypeError(f"{supervisor_type} judges nothing")
    options = {name: value for name, value in role.options.items() if name in kind.fields}
    setup = SupervisorSetup(
        nick, directory, chosen_model(role.model), thinking="off", options=options, system_prompt=SYSTEM_PROMPT
    )
    supervisor, lock = supervisor_type(setup), asyncio.Lock()

    async def ask(question: str) -> str:
        try:
            # One question at a time: cancelling one would cancel another that shares the process.
            async with lock, asyncio.timeout(PATIENCE):
                return await supervisor.judge(question)
        except TimeoutError:
            raise NoAnswer(f"no answer within {PATIENCE:g} s") from None

    return ask
