"""Looking after the members: that they are there, what they use, what they missed, and whether they are idle."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from culture.orchestrator.budget import Budget
from culture.orchestrator.errors import NoAnswer, Stays
from culture.orchestrator.inbound import CHECK
from culture.orchestrator.journal.state import TeamMember, TeamTask
from culture.orchestrator.members.handles import figures, handle
from culture.orchestrator.members.hiring import SEEN, MemberHiring
from culture.orchestrator.members.members import Fill
from culture.orchestrator.members.recovery import MemberRecovery
from culture.orchestrator.members.shift import Shift
from culture.orchestrator.parts import TeamParts
from culture.orchestrator.repository.overlap import Conflicts
from culture.orchestrator.tasks.ledger import publish
from culture.orchestrator.tasks.standstill import STANDSTILL, Standstill
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
"""So long after somebody has spoken it is looked at what they used."""
AGAIN = 2.0
"""And again so long after that, for as long as they work."""
Judge = Callable[[str], Awaitable[str]]


@dataclass
class Pulse:
    """What is remembered of one member between two looks."""

    busy_at: float
    """When it was last seen to have something to do, or was first looked at."""
    step: int = 0
    """How often it was found idle in a row."""
    next_at: float = 0.0
    """It is not asked about before."""
    silent: int = 0
    """How often its daemon did not answer in a row."""


class Heartbeat:
    """Every so often, and soon after somebody has spoken."""

    def __init__(
        self,
        parts: TeamParts,
        hiring: MemberHiring,
        budget: Budget,
        shift: Shift,
        recovery: MemberRecovery,
        take_up: Callable[[], None],
        judge: Judge | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._parts = parts
        self._hiring = hiring
        self._budget = budget
        self._shift = shift
        self._recovery = recovery
        self._conflicts = Conflicts(parts, hiring)
        self._standstill = Standstill(parts, hiring)
        self._take_up = take_up
        self._judge = judge
        self._clock = clock
        self._pulses: dict[str, Pulse] = {}
        self._due = clock() + parts.config.heartbeat
        self._spoke = asyncio.Event()
        self._speakers: set[str] = set()

    def heard(self, nick: str) -> None:
        """Somebody has spoken: a turn goes on or has ended."""
        self._speakers.add(nick)
        self._spoke.set()

    async def run(self) -> None:
        """Look after everybody, until cancelled."""
        while True:
            if self._clock() >= self._due:
                try:
                    await self.beat()
                finally:
                    self._due = self._clock() + self._parts.config.heartbeat
            try:
                async with asyncio.timeout(max(0.0, self._due - self._clock())):
                    await self._spoke.wait()
                    await asyncio.sleep(SOON)
            except TimeoutError:
                continue
            await self.glance()

    async def glance(self) -> None:
        """What those who have spoken used meanwhile."""
        self._spoke.clear()
        speakers, self._speakers = self._speakers, set()
        found = [member for nick in speakers if (member := self._parts.book.state.member(nick)) is not None]
        there = [member for member in found if member.hired and not member.leaving]
        await asyncio.gather(*(self._guarded(member, self._glance_at) for member in there))
        await self._budget.look()

    async def note_usage(self, member: TeamMember) -> None:
        """A member has used more, perhaps in the middle of a turn: stop it where the budget is spent."""
        now = self._parts.book.state.member(member.nick)
        if now is not None and now.hired and not now.leaving:
            await self._figures(now)
            await self._budget.look()

    async def _glance_at(self, member: TeamMember) -> None:
        status = await self._figures(member)
        if status is not None and status.get("state") in SEEN:
            # What a turn has used is known when it is over.
            asyncio.get_running_loop().call_later(AGAIN, self.heard, member.nick)

    async def beat(self) -> None:
        """Look at everything."""
        parts = self._parts
        self._take_up()
        members = [member for member in parts.book.state.members.values() if member.hired and not member.leaving]
        await asyncio.gather(*(self._guarded(member, self._look) for member in members))
        await self._budget.look()
        for task in parts.book.state.live_tasks():
            try:
                await self._notice_standstill(task)
                await publish(parts, task.id)
            except Exception:
                # The other tasks, and what is still to be said, do not wait for one that is broken.
                log.exception("%s was not looked after", task.id)
        await self._conflicts.look()
        await parts.record.catch_up()
        await parts.rooms.catch_up()

    async def _guarded(self, member: TeamMember, look: Callable[[TeamMember], Awaitable[None]]) -> None:
        try:
            await look(member)
        except Exception:
            # Whoever has spent too much is stopped, whatever is the matter with somebody else.
            log.exception("%s was not looked after", member.nick)

    async def _look(self, member: TeamMember) -> None:
        if self._shift.is_open(member.nick):
            return
        if not self._parts.daemons.is_running(member.nick):
            await self._recovery.bring_back(member, "its daemon is gone")
            return
        status = await self._figures(member)
        pulse = self._pulse(member)
        if status is None or status.get("state") != "idle" or status.get("unread"):
            pulse.busy_at = self._clock()
        if status is None:
            pulse.silent += 1
            if pulse.silent >= self._parts.config.limits.attempts:
                pulse.silent = 0
                try:
                    await self._parts.daemons.stop(member.nick)
                except Stays as why:
                    await self._parts.complain(f"stays {member.nick}", str(why))
                    return
                await self._recovery.bring_back(member, "its daemon does not answer")
            return
        pulse.silent = 0
        if status.get("state") == "crashed":
            await self._recovery.replace(member, "its program does not run")
        elif self._budget.is_parked(member):
            await self._budget.hold(member)
        elif not self._shift.is_open(member.nick):
            await self._wake_if_missed(member, status)
            try:
                await self._hiring.catch_up(member.nick)
            except NoAnswer as why:
                log.info("%s: %s", member.nick, why)
            if self._parts.config.idle_check == "model":
                await self._check_in_if_idle(member, status, pulse)

    async def _figures(self, member: TeamMember) -> Mapping[str, Any] | None:
        """What it has used; None when its daemon does not answer."""
        try:
            status = await figures(self._parts, member)
        except NoAnswer as why:
            log.info("%s: %s", member.nick, why)
            return None
        if (now := self._parts.book.state.member(member.nick)) is not None:
            await self._mind_context(now)
        return status

    async def _mind_context(self, member: TeamMember) -> None:
        tracker = handle(self._parts, member).session.context_tracker
        if self._shift.is_open(member.nick) or self._budget.is_parked(member):
            return
        if tracker.fill is Fill.SHIFT:
            self._shift.begin(member, f"the context is {tracker.pct:.0f} % full")
        elif tracker.fill is Fill.WARN and not member.wrapping_up:
            key = f"wrap-{member.order_key}-{self._parts.book.state.shifts}"
            try:
                await self._hiring.give(member.nick, key, WRAP_UP.format(full=round(tracker.pct)), wrap_up=True)
            except NoAnswer as why:
                log.info("%s was not warned: %s", member.nick, why)

    def _pulse(self, member: TeamMember) -> Pulse:
        return self._pulses.setdefault(member.nick, Pulse(self._clock()))

    async def _notice_standstill(self, task: TeamTask) -> None:
        if not self._standstill.concerns(task):
            return
        pulses = [self._pulse(member) for member in self._parts.book.state.team_of(task.id)]
        since = max(pulse.busy_at for pulse in pulses)
        if self._clock() - since >= STANDSTILL and await self._standstill.tell(task, since):
            for pulse in pulses:
                # Whoever was prompted has as long again to do something about it.
                pulse.busy_at = self._clock()

    async def _wake_if_missed(self, member: TeamMember, status: Mapping[str, Any]) -> None:
        """Messages that came while it was away start no turn by themselves (decision 28)."""
        stale = int(status.get("stale", 0))
        if not stale or status.get("state") in SEEN:
            return
        last = (status.get("last_message") or {}).get("msgid", "")
        text = f"{CHECK} {stale} messages came while you were away."
        await self._hiring.tell(member.nick, f"missed-{member.nick}-{last}-{stale}", text)

    async def _check_in_if_idle(self, member: TeamMember, status: Mapping[str, Any], pulse: Pulse) -> None:
        """The founding text's way: a small model says who is idle, and those are asked to look around (O09–O11)."""
        if status.get("state") != "idle":
            pulse.step, pulse.next_at = 0, 0.0
            return
        if self._judge is None or self._clock() < pulse.next_at:
            return
        if not await self.is_idle(member.nick):
            pulse.step, pulse.next_at = 0, 0.0
            return
        backoff = self._parts.config.heartbeat_backoff
        pulse.next_at = self._clock() + backoff[min(pulse.step, len(backoff) - 1)]
        pulse.step += 1
        key = f"idle-{member.nick}-{self._parts.book.state.number}"
        await self._hiring.tell(member.nick, key, CHECK_IN)

    async def is_idle(self, nick: str) -> bool:
        """What the small model says; who cannot be judged is left alone."""
        assert self._judge is not None
        activity = clean(self._parts.rooms.lately(nick), Profile.MODEL) or "(nothing)"
        try:
            said = await self._judge(IDLE_QUESTION.format(nick=nick, activity=activity))
        except Exception as error:
            log.warning("nobody can say whether %s is idle: %s", nick, error)
            return False
        return said.strip().strip(".!").lower() == "yes"
