"""Shared objects of a team: configuration, store, IRC, daemons, background jobs."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from culture.config.team import TeamConfig
from culture.orchestrator.irc import TeamRooms
from culture.orchestrator.journal.state import Act, TeamMember
from culture.orchestrator.journal.store import TeamStore
from culture.orchestrator.members.daemons import MemberDaemons
from culture.orchestrator.members.members import AgentSession, ContextTracker, ManagedAgent, ModelTier
from culture.orchestrator.members.roster import MemberConfigs
from culture.orchestrator.repository.worktrees import Worktrees
from culture.orchestrator.wiki_record import WikiRecord
from culture.protocol.vocabulary import WellKnownChannel

log = logging.getLogger(__name__)

_LONGEST_KEY = 200


class Jobs:
    """Runs background jobs, one per name; a failed job is reported and ends no other."""

    def __init__(self, on_failure: Callable[[str, Exception], None]) -> None:
        self._on_failure = on_failure
        self._running: dict[str, asyncio.Task[None]] = {}

    def start(self, name: str, work: Coroutine[Any, Any, object]) -> None:
        """Run ``work`` as a background job, unless a job of the same name is running."""
        if name in self._running:
            work.close()
            return
        self._running[name] = asyncio.create_task(self._run(name, work), name=name)

    def is_running(self, name: str) -> bool:
        """Return whether a background job of this name is running."""
        return name in self._running

    async def settle(self) -> None:
        """Wait until no background job is running."""
        while self._running:
            await asyncio.wait(list(self._running.values()))

    async def stop(self) -> None:
        """Cancel all running background jobs, and wait until they have ended."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, name: str, work: Coroutine[Any, Any, object]) -> None:
        try:
            await work
        except Exception as error:
            log.exception("%s failed", name)
            self._on_failure(name, error)
        finally:
            del self._running[name]


@dataclass
class TeamContext:
    """A team's configuration, folder, journal and connections, which its other objects share."""

    config: TeamConfig
    server: str
    """Short name of the server: the prefix of every nick."""
    folder: Path
    main: str
    """Branch that tasks begin at and are merged into."""
    remote: str | None
    store: TeamStore
    rooms: TeamRooms
    roster: MemberConfigs
    daemons: MemberDaemons
    worktrees: Worktrees
    wiki: WikiRecord
    jobs: Jobs = field(init=False)
    agents: dict[str, ManagedAgent] = field(default_factory=dict)
    """Handles on the members, by name."""

    def __post_init__(self) -> None:
        self.jobs = Jobs(self._report_failure)

    @property
    def em(self) -> str:
        """Return the nick of the engineering manager (EM)."""
        return self.nick_of(self.config.em_name)

    def nick_of(self, name: str) -> str:
        """Return the nick of the member with this name, which begins with the server's name."""
        return f"{self.server}-{name}"

    def handle(self, member: TeamMember) -> ManagedAgent:
        """Return the runtime object of a member (session, task, role), created on first use."""
        if member.name not in self.agents:
            self.agents[member.name] = ManagedAgent(self._session(member), member.task_id, member.role)
        return self.agents[member.name]

    async def read_usage(self, member: TeamMember) -> Mapping[str, Any]:
        """Record a member's usage in the journal, and return the status of its daemon.

        The usage is a part of the status. ``NoAnswer`` if the daemon does not answer.
        """
        session = self.handle(member).session
        status = await session.refresh()
        tokens = int(status.get("tokens_ever", 0))
        if status.get("context_pct") is None:
            session.context_tracker.add(max(0, tokens - member.tokens))
        usage = {
            "tokens": tokens,
            "cost_usd": float(status.get("cost_usd_ever", 0.0)),
            "context_pct": session.context_tracker.pct,
            "session": session.session_id,
        }
        now = self.store.state.member(member.nick)
        if now is not None and (now.tokens, now.cost, now.context_pct, now.session_id) != tuple(usage.values()):
            self.store.done(Act.SPENT, nick=now.nick, **usage)
        return status

    async def complain(self, key: str, text: str) -> None:
        """Post a problem in #errors, where people and the EM look; once per ``key``."""
        await self.rooms.say_once(key, text, WellKnownChannel.ERRORS.value)

    def _session(self, member: TeamMember) -> AgentSession:
        config, role = self.config, self.config.role(member.role)
        tracker = ContextTracker(
            window_size=ModelTier.context_window(role.model),
            threshold_pct=config.shift_threshold_pct,
            warn_pct=config.warn_pct,
        )
        tracker.input_tokens = int((member.context_pct or 0.0) * tracker.window_size / 100)
        return AgentSession(
            name=member.name,
            model=role.model or "",
            system_prompt=self.roster.system_prompt(member, self.store.state),
            cwd=member.worktree_path,
            mcp_servers=self.roster.mcp_servers(member.nick),
            context_tracker=tracker,
            daemons=self.daemons,
            nick=member.nick,
            session_id=member.session_id,
            _send_timeout=config.send_timeout,
        )

    def _report_failure(self, name: str, error: Exception) -> None:
        """Post a background job's failure in #errors, each error once."""
        if not name.startswith("complain "):
            text = f"[{self.config.slug}] {name}: {error}"
            self.jobs.start(f"complain {name}", self.complain(f"failed {name} {error}"[:_LONGEST_KEY], text))
