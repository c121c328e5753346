"""The state of a team: members, tasks, names, open acts; computed by ``replay``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from culture.orchestrator.journal.journal import JournalEntry
from culture.protocol.names import fold


class Act(StrEnum):
    """The kinds of acts in the journal; every act can be repeated without harm."""

    TASK = "task"
    """A task is accepted: id, text, by, msgid, place."""
    QUEUED = "queued"
    """A task waits until others are over: id."""
    WORKTREE = "worktree"
    """A task's worktree and branch are created: id, path, branch, base."""
    WANTED = "wanted"
    """A worker is requested: key (the line's msgid), id, role, text, by, place. Closed by HIRE."""
    HIRE = "hire"
    """A member is started: name, nick, role, task, channels, worktree, order, order_key; done with its session."""
    PROMPT = "prompt"
    """A member gets a prompt: nick, key, text."""
    SHIFT = "shift"
    """A member hands over: nick, page, successor (this name is then in use)."""
    RETIRE = "retire"
    """A member is retired: nick, why."""
    REPORT = "report"
    """A task's manager reports its status: key, id, how, text."""
    CLEANUP = "cleanup"
    """A task's worktree is removed after salvage: id, ref; or it stays: stays (the reason)."""
    SPENT = "spent"
    """Total usage of a member: nick, tokens, cost_usd, context_pct, session."""
    ANNOUNCED = "told"
    """A notice was sent once: key, and further keys (also)."""
    ALLOWANCE = "allowance"
    """A person set a budget: id (a task, or "team"), usd, tokens."""
    PARK = "park"
    """A task's or the team's budget is spent: id. Done when all its members are paused."""
    RELEASE = "release"
    """A parked task or team continues: id."""


class TaskStage(StrEnum):
    """Stage of a task of the team, from taken to done or failed."""

    TAKEN = "taken"
    QUEUED = "queued"
    """Starts when the limit of tasks allows it."""
    WORKING = "working"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        """Return whether the task has ended."""
        return self in (TaskStage.DONE, TaskStage.FAILED)


@dataclass(frozen=True, slots=True)
class TeamTask:
    """A task of a team, with its branch, worktree, channel and manager."""

    id: str
    text: str
    by: str
    msgid: str = ""
    stage: TaskStage = TaskStage.TAKEN
    branch: str = ""
    worktree: str = ""
    base: str = ""
    manager: str | None = None
    """Nick of the manager."""
    said: str = ""
    """Text of the last report."""
    rescue: str = ""
    """Git ref with the work that was not committed when the worktree was removed."""
    cleaned: bool = False
    stays: str = ""
    """Why the worktree was not removed at the end; people remove it."""
    tokens: int = 0
    cost_usd: float = 0.0
    """Usage of members that are gone."""
    shifts: int = 0
    """Number of shift changes."""

    @property
    def channel(self) -> str:
        """Return the name of the task's channel."""
        return f"#work-{self.id}"


@dataclass(frozen=True, slots=True)
class TeamMember:
    """A member of the team: its name, role, task, channels and usage."""

    name: str
    nick: str
    role: str
    task_id: str | None = None
    channels: tuple[str, ...] = ()
    session_id: str | None = None
    tokens: int = 0
    cost: float = 0.0
    worktree_path: str = ""
    context_pct: float | None = None
    hired: bool = False
    """Its daemon was seen running; before that its start is only intended."""
    wrapping_up: bool = False
    """Whether the member was prompted to wrap up because its context fills up."""
    leaving: bool = False
    """Its retirement is intended."""
    order: str = ""
    """The order that it was hired for: its first prompt."""
    order_key: str = ""
    """Key of that prompt."""
    wanted: str = ""
    """Msgid of the line that requested it; empty if nobody waits for an answer."""


@dataclass(frozen=True, slots=True)
class TeamState:
    """The whole state of a team, as of the journal's entry ``number``."""

    number: int = 0
    members: Mapping[str, TeamMember] = field(default_factory=dict)
    """Members by folded nick."""
    tasks: Mapping[str, TeamTask] = field(default_factory=dict)
    """Tasks by id, the oldest first."""
    names: tuple[str, ...] = ()
    """Every name that was ever given."""
    open: Mapping[str, JournalEntry] = field(default_factory=dict)
    """Acts that are intended and neither done nor failed, by ``key_of``."""
    handled: Mapping[str, None] = field(default_factory=dict)
    """Msgids of handled ``TASK:`` lines, the latest ones, oldest first."""
    announced: Mapping[str, None] = field(default_factory=dict)
    """Keys of notices sent once, the latest ones."""
    prompts: Mapping[str, None] = field(default_factory=dict)
    """Keys of the latest prompts given to members; a daemon accepts a key once, too."""
    spent_tokens: int = 0
    spent_usd: float = 0.0
    """Usage of members that are gone."""
    shifts: int = 0
    """Number of the EM's shift changes."""
    allowances: Mapping[str, tuple[float | None, int | None]] = field(default_factory=dict)
    """Budgets (dollars, tokens) set by a person instead of the file's, by task id or ``team``."""
    parked: frozenset[str] = frozenset()
    """Ids of the tasks, or ``team``, whose budget is spent."""

    def member(self, nick: str) -> TeamMember | None:
        """Return the member with this nick, or None."""
        return self.members.get(fold(nick))

    def team_of(self, task: str) -> list[TeamMember]:
        """Return the members that work on a task."""
        return [member for member in self.members.values() if member.task_id == task]

    def find_member(self, name: str) -> TeamMember | None:
        """Return the member with this name or nick, or None."""
        folded = fold(name)
        return next((each for key, each in self.members.items() if folded in (key, fold(each.name))), None)

    @property
    def em(self) -> TeamMember | None:
        """Return the team's engineering manager (EM), or None."""
        return next((member for member in self.members.values() if member.role == "em"), None)

    def live_tasks(self) -> list[TeamTask]:
        """Return the tasks that have not ended."""
        return [task for task in self.tasks.values() if not task.stage.is_over]

    def before(self, id: str) -> list[TeamTask]:
        """Return the tasks that have precedence over the task ``id`` when it asks for a free place.

        They are those that have a worktree, and those accepted before it.
        """
        live = [task.id for task in self.live_tasks()]
        earlier = set(live[: live.index(id)] if id in live else live)
        return [task for task in self.live_tasks() if task.id != id and (task.worktree or task.id in earlier)]

    def pending(self, what: Act) -> list[JournalEntry]:
        """Return the journal entries of acts of a kind that were intended and are not done."""
        return [entry for entry in self.open.values() if entry.what == what]

    def tokens(self) -> int:
        """Return the tokens that the team has used in all."""
        return self.spent_tokens + sum(member.tokens for member in self.members.values())

    def usd(self) -> float:
        """Return the dollars that the team has cost in all."""
        return self.spent_usd + sum(member.cost for member in self.members.values())

    def task_usd(self, id: str) -> float:
        """Return the dollars that a task has cost."""
        task = self.tasks.get(id)
        return (task.cost_usd if task else 0.0) + sum(member.cost for member in self.team_of(id))

    def task_tokens(self, id: str) -> int:
        """Return the tokens that a task has used."""
        task = self.tasks.get(id)
        return (task.tokens if task else 0) + sum(member.tokens for member in self.team_of(id))

    def next_id(self, slug: str, highest: int = 0) -> str:
        """Return the id of the next task, such as ``demo-7``: the team's short name and a number.

        ``slug``: the team's short name. The number is one above ``highest`` and all task numbers in the state.
        """
        ids = [*self.tasks, *(entry.data["id"] for entry in self.pending(Act.TASK))]
        return f"{slug}-{1 + max(highest, *(int(id.rpartition('-')[2]) for id in ids), 0)}"


def key_of(entry: JournalEntry) -> str:
    """Return the key of the act that the entry is about; the same in all phases of the act."""
    data = entry.data
    about = data.get("key") or data.get("nick") or data.get("id") or ""
    return f"{entry.what} {fold(str(about))}"
