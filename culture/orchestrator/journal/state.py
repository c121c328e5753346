"""What the team knows; ``replay`` has it from the journal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from culture.orchestrator.journal.journal import JournalEntry


class What(StrEnum):
    """The acts that are journalled. Each can be done twice without harm."""

    TASK = "task"
    """A task is taken on: id, text, by, msgid, place."""
    QUEUED = "queued"
    """A task waits until others are over: id."""
    WORKTREE = "worktree"
    """Its worktree and branch are made: id, path, branch, base."""
    WANTED = "wanted"
    """A worker was asked for: key (the line's msgid), id, role, text, by, place. Over when one is to come."""
    HIRE = "hire"
    """A member is started: name, nick, role, task, channels, worktree, order, order_key; done with its session."""
    PROMPT = "prompt"
    """A member is given a prompt: nick, key, text."""
    SHIFT = "shift"
    """A member hands over: nick, page, successor (a name that is taken with it)."""
    RETIRE = "retire"
    """A member is ended: nick, why."""
    REPORT = "report"
    """The owner of a task says how it stands: key, id, how, text."""
    CLEANUP = "cleanup"
    """A task's worktree is removed, after what is not committed was kept: id, ref; or stays, with the reason."""
    SPENT = "spent"
    """A member has used so much in all: nick, tokens, cost_usd, context_pct, session."""
    TOLD = "told"
    """Something was said once and is not said again: key, and further ones (also)."""
    ALLOWANCE = "allowance"
    """A person says what may be spent: id (a task, or "team"), usd, tokens."""
    PARK = "park"
    """A task, or the team, has spent what it may: id. Done when nobody works on it any more."""
    RELEASE = "release"
    """It may go on: id."""


class TaskStage(StrEnum):
    """How far a task has come."""

    TAKEN = "taken"
    QUEUED = "queued"
    """It is begun when there is room for it."""
    WORKING = "working"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        """Whether nobody works on it any more."""
        return self in (TaskStage.DONE, TaskStage.FAILED)


@dataclass(frozen=True, slots=True)
class TeamTask:
    """One piece of work: a branch, a worktree, a channel, and somebody who owns it."""

    id: str
    text: str
    by: str
    msgid: str = ""
    stage: TaskStage = TaskStage.TAKEN
    branch: str = ""
    worktree: str = ""
    base: str = ""
    manager: str | None = None
    """The nick of who owns it."""
    said: str = ""
    """What its owner said of it last."""
    rescue: str = ""
    """The ref under which work is kept that was not committed when its worktree was removed."""
    cleaned: bool = False
    stays: str = ""
    """Why its worktree was not removed when it ended; people remove it."""
    tokens: int = 0
    cost_usd: float = 0.0
    """What members used for it that are gone."""
    shifts: int = 0
    """How often somebody has handed over."""

    @property
    def channel(self) -> str:
        """Where it is worked on."""
        return f"#work-{self.id}"


@dataclass(frozen=True, slots=True)
class TeamMember:
    """One agent of the team."""

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
    """It was seen running; before that its start is only intended."""
    wrapping_up: bool = False
    """It was told that its context fills up."""
    leaving: bool = False
    """Its end is intended."""
    order: str = ""
    """What it was hired for, as its first prompt says it."""
    order_key: str = ""
    """The key of that prompt."""
    wanted: str = ""
    """The line that asked for it, where somebody waits for the answer."""


@dataclass(frozen=True, slots=True)
class TeamState:
    """Everything, as of one entry of the journal."""

    number: int = 0
    members: Mapping[str, TeamMember] = field(default_factory=dict)
    """By nick."""
    tasks: Mapping[str, TeamTask] = field(default_factory=dict)
    """By id, the oldest first."""
    names: tuple[str, ...] = ()
    """Every name that was ever given."""
    open: Mapping[str, JournalEntry] = field(default_factory=dict)
    """What is intended and neither done nor failed, by what and whom it concerns."""
    heard: Mapping[str, None] = field(default_factory=dict)
    """The TASK lines that were acted upon, by msgid, the oldest first: the latest ones, as are the next two."""
    told: Mapping[str, None] = field(default_factory=dict)
    prompts: Mapping[str, None] = field(default_factory=dict)
    """The keys of the prompts that members have; a daemon takes a key once, too."""
    spent_tokens: int = 0
    spent_usd: float = 0.0
    """What members used that are gone."""
    shifts: int = 0
    """How often an EM has handed over."""
    allowances: Mapping[str, tuple[float | None, int | None]] = field(default_factory=dict)
    """Dollars and tokens that a person allowed in place of the file's, by task or for the team."""
    parked: frozenset[str] = frozenset()
    """The tasks, or the team, that have spent what they may."""

    def member(self, nick: str) -> TeamMember | None:
        """Who has this nick."""
        return self.members.get(nick.lower())

    def team_of(self, task: str) -> list[TeamMember]:
        """Who works on a task."""
        return [member for member in self.members.values() if member.task_id == task]

    def named(self, name: str) -> TeamMember | None:
        """Who is called that, by name or by nick."""
        wanted = name.lower()
        return next((each for key, each in self.members.items() if wanted in (key, each.name.lower())), None)

    @property
    def em(self) -> TeamMember | None:
        """Who runs the team."""
        return next((member for member in self.members.values() if member.role == "em"), None)

    def live_tasks(self) -> list[TeamTask]:
        """Those that are not over."""
        return [task for task in self.tasks.values() if not task.stage.is_over]

    def before(self, id: str) -> list[TeamTask]:
        """The tasks that are under way or were taken on before a task that is not begun."""
        live = [task.id for task in self.live_tasks()]
        earlier = set(live[: live.index(id)] if id in live else live)
        return [task for task in self.live_tasks() if task.id != id and (task.worktree or task.id in earlier)]

    def pending(self, what: What) -> list[JournalEntry]:
        """The acts of a kind that are intended and neither done nor failed."""
        return [entry for entry in self.open.values() if entry.what == what]

    def tokens(self) -> int:
        """What the team has used in all."""
        return self.spent_tokens + sum(member.tokens for member in self.members.values())

    def usd(self) -> float:
        """What the team has cost in all."""
        return self.spent_usd + sum(member.cost for member in self.members.values())

    def task_usd(self, id: str) -> float:
        """What a task has cost."""
        task = self.tasks.get(id)
        return (task.cost_usd if task else 0.0) + sum(member.cost for member in self.team_of(id))

    def task_tokens(self, id: str) -> int:
        """What a task has used."""
        task = self.tasks.get(id)
        return (task.tokens if task else 0) + sum(member.tokens for member in self.team_of(id))

    def next_id(self, slug: str, given: int = 0) -> str:
        """The id of the next task, above those that are known, intended, or were given (the highest number)."""
        known = [*self.tasks, *(entry.data["id"] for entry in self.pending(What.TASK))]
        return f"{slug}-{1 + max(given, *(int(id.rpartition('-')[2]) for id in known), 0)}"


def key_of(entry: JournalEntry) -> str:
    """Which act an entry is about."""
    data = entry.data
    about = data.get("key") or data.get("nick") or data.get("id") or ""
    return f"{entry.what} {str(about).lower()}"
