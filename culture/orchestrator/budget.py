"""Budgets of team and tasks: pauses members when one is spent, until a person raises it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from culture.config.team import TeamConfig
from culture.orchestrator.errors import NoAnswer
from culture.orchestrator.journal.state import Act, TeamMember, TeamState
from culture.orchestrator.members.hiring import IN_TURN, MemberHiring
from culture.orchestrator.team_context import TeamContext

log = logging.getLogger(__name__)

TEAM = "team"
GO_ON = """The budget of {id} was spent while you were at work, and you were stopped in the middle of it. More may be
used now: look where you were, and go on."""
HOLD_TIME = 600.0
"""Seconds that a daemon may hold a request open."""
_MARGIN = 15.0
_PAUSE = 5.0
"""Seconds until a daemon that did not answer is asked again."""


def resume_key_prefix(member: TeamMember) -> str:
    """Return the prefix of the keys of a member's prompts to continue after a budget was raised.

    A prompt's key is its idempotency key: the member's daemon accepts each key once.
    """
    return f"goon-{member.nick}-"


def allowance(config: TeamConfig, state: TeamState, id: str) -> tuple[float | None, int | None]:
    """Return the dollars and tokens that ``id`` (a task or the team) may use; None: no limit.

    A person's latest command counts, else the budget in team.yaml (``config``).
    """
    allowed = state.allowances.get(id)
    if allowed is not None:
        return allowed
    limit = config.budget.team if id == TEAM else config.budget.task
    return limit.usd, limit.tokens


def usage_of(state: TeamState, id: str) -> tuple[float, int]:
    """Return the dollars and tokens that ``id`` (a task or the team) has used."""
    return (state.usd(), state.tokens()) if id == TEAM else (state.task_usd(id), state.task_tokens(id))


class Budget:
    """Pauses and resumes members according to the budgets of the tasks and the team.

    A member's own budget is enforced by its daemon.
    """

    def __init__(self, context: TeamContext, hiring: MemberHiring) -> None:
        self._context = context
        self._hiring = hiring
        self._lock = asyncio.Lock()
        """Serialises pausing and resuming: otherwise the end of a pause could overtake the pause itself."""

    async def enforce(self) -> None:
        """Pause the members whose budget is spent, and resume those whose budget was raised."""
        async with self._lock:
            for id in (TEAM, *(task.id for task in self._context.store.state.live_tasks())):
                is_spent = self._is_spent(id)
                if is_spent and not self._is_fully_parked(id):
                    await self._park(id)
                elif not is_spent and id in self._context.store.state.parked:
                    await self._release(id)

    def _is_fully_parked(self, id: str) -> bool:
        """Return whether all members of ``id`` (task or team) are paused and people were informed.

        False if the process died in between, so that the pause has to be repeated.
        """
        state = self._context.store.state
        return id in state.parked and all(entry.data["id"] != id for entry in state.pending(Act.PARK))

    def is_parked(self, member: TeamMember) -> bool:
        """Return whether a member may not work, as the budget of its task or team is spent."""
        return bool(self._context.store.state.parked & {TEAM, member.task_id or ""})

    async def pause_if_parked(self, member: TeamMember) -> None:
        """Pause a member if the budget of its task or team is spent.

        A daemon that restarted has to be told again.
        """
        async with self._lock:
            if self.is_parked(member):
                await self._order(member, "pause")

    async def _interrupt(self, member: TeamMember, id: str) -> None:
        """Pause a member after its current tool call because the budget of ``id`` is spent.

        ``id`` is a task or the team. If the member was in a turn, a prompt to continue is queued in its daemon for
        the time after the pause.
        """
        key, text = f"{resume_key_prefix(member)}{self._context.store.state.number}", GO_ON.format(id=id)
        try:
            is_in_turn = (await self._context.daemons.call(member.nick, "status")).get("state") in IN_TURN
            if is_in_turn:
                self._hiring.promise(member.nick, key, text, member.channels[0])
            await self._context.daemons.call(member.nick, "pause", soon=True)
        except NoAnswer as why:
            # A daemon from before an upgrade can only pause at the end of a turn.
            log.warning("%s cannot be paused within its turn: %s", member.nick, why)
            await self._order(member, "pause")
            return
        if is_in_turn:
            # The daemon queues the prompt until the member is resumed.
            await self._hiring.tell(member.nick, key, text, member.channels[0])

    def _is_spent(self, id: str) -> bool:
        state = self._context.store.state
        (usd, tokens), (used_usd, used_tokens) = allowance(self._context.config, state, id), usage_of(state, id)
        return (usd is not None and used_usd >= usd) or (tokens is not None and used_tokens >= tokens)

    async def _park(self, id: str) -> None:
        context = self._context
        context.store.intend(Act.PARK, id=id)
        for member in self._members_of(id):
            await self._interrupt(member, id)
        usd, tokens = usage_of(context.store.state, id)
        text = (
            f"[BUDGET] {id} has used ${usd:.2f} and {tokens} tokens, all that it may. Nobody works on it until a "
            f"person allows more: culture team budget {'' if id == TEAM else f'{id} '}--usd N or --tokens N."
        )
        task = context.store.state.tasks.get(id)
        rooms = (context.config.project_channel, context.config.standup_channel, *((task.channel,) if task else ()))
        await context.rooms.say_once(f"budget {id} {usd:.4f} {tokens}", text, *rooms)
        context.store.done(Act.PARK, id=id)

    async def _release(self, id: str) -> None:
        """Resume the members whose pause only the budget of ``id`` (a task or the team) caused.

        The release is recorded afterwards, so that it is repeated if the process dies in between.
        """
        others = self._context.store.state.parked - {id}
        for member in self._members_of(id):
            if not others & {TEAM, member.task_id or ""}:
                await self._order(member, "resume")
        self._context.store.done(Act.RELEASE, id=id)
        await self._context.rooms.say(self._context.config.standup_channel, f"[BUDGET] {id} goes on.")

    def _members_of(self, id: str) -> list[TeamMember]:
        state = self._context.store.state
        return list(state.members.values()) if id == TEAM else state.team_of(id)

    async def _order(self, member: TeamMember, verb: str) -> None:
        try:
            await self._context.daemons.call(member.nick, verb)
        except NoAnswer as why:
            log.warning("%s did not accept %s: %s", member.nick, verb, why)


class UsageWatch:
    """Runs one asyncio task per member that watches the member's usage."""

    def __init__(self, context: TeamContext, on_usage: Callable[[TeamMember], Awaitable[object]]) -> None:
        self._context = context
        self._on_usage = on_usage
        """Called when a member has used more."""
        self._watching: dict[str, asyncio.Task[None]] = {}

    def watch_members(self) -> None:
        """Start watching every hired member that is not watched yet."""
        for member in self._context.store.state.members.values():
            if member.hired and not member.leaving and member.nick not in self._watching:
                task = asyncio.create_task(self._watch(member.nick), name=f"usage of {member.nick}")
                self._watching[member.nick] = task

    async def stop(self) -> None:
        """Stop watching all members."""
        watching = list(self._watching.values())
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)

    async def _watch(self, nick: str) -> None:
        mark = None
        try:
            while (member := self._context.store.state.member(nick)) is not None and not member.leaving:
                mark = await self._next(member, mark)
        finally:
            del self._watching[nick]

    async def _next(self, member: TeamMember, mark: str | None) -> str | None:
        """Wait until a member's usage exceeds that at ``mark``, handle it, and return the new mark.

        A mark is the daemon's position in the usage; None if the daemon did not answer.
        """
        since = {"since": mark} if mark else {}
        try:
            usage = await self._context.daemons.call(
                member.nick, "usage", HOLD_TIME + _MARGIN, timeout=HOLD_TIME, **since
            )
        except NoAnswer as why:
            # It is starting, or runs a version without `usage`; the heartbeat reads the usage too.
            log.debug("%s: %s", member.nick, why)
            await asyncio.sleep(_PAUSE)
            return None
        try:
            await self._on_usage(member)
        except Exception:
            log.exception("handling the usage of %s failed", member.nick)
            await asyncio.sleep(_PAUSE)
        return str(usage.get("mark"))
