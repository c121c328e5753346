"""What the acts of a team have in common."""

from dataclasses import dataclass, field
from pathlib import Path

from culture.config.team import TeamConfig
from culture.orchestrator.background import Jobs
from culture.orchestrator.irc import TeamRooms
from culture.orchestrator.journal.store import TeamStore
from culture.orchestrator.members.daemons import MemberDaemons
from culture.orchestrator.members.members import ManagedAgent
from culture.orchestrator.members.roster import MemberConfigs
from culture.orchestrator.repository.worktrees import Worktrees
from culture.orchestrator.wiki_record import Record
from culture.protocol.vocabulary import WellKnownChannel

_LONGEST_KEY = 200


@dataclass
class TeamParts:
    """One team."""

    config: TeamConfig
    server: str
    """The short name of the server, which every nick begins with."""
    folder: Path
    main: str
    """The branch that tasks begin at and are merged into."""
    remote: str | None
    book: TeamStore
    rooms: TeamRooms
    roster: MemberConfigs
    daemons: MemberDaemons
    worktrees: Worktrees
    record: Record
    jobs: Jobs = field(init=False)
    agents: dict[str, ManagedAgent] = field(default_factory=dict)
    """The members that are there, by name."""

    def __post_init__(self) -> None:
        self.jobs = Jobs(self._failed)

    @property
    def em(self) -> str:
        """The EM's nick."""
        return self.nick_of(self.config.em_name)

    def nick_of(self, name: str) -> str:
        """The nick of who has this name."""
        return f"{self.server}-{name}"

    async def complain(self, key: str, text: str) -> None:
        """What could not be helped is told once where people and the EM look (O30)."""
        await self.rooms.say_once(key, text, WellKnownChannel.ERRORS.value)

    def _failed(self, name: str, error: Exception) -> None:
        """What a job failed with is told once; it may be tried again with each heartbeat."""
        if not name.startswith("complain "):
            text = f"[{self.config.slug}] {name}: {error}"
            self.jobs.start(f"complain {name}", self.complain(f"failed {name} {error}"[:_LONGEST_KEY], text))
