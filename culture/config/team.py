"""team.yaml: the project of a team, its members and its budget."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from culture.config.agents import Money, ServerAddress, SupervisorConfig, TrustConfig, Wake, WebhookConfig
from culture.config.sandbox import Sandbox, SandboxConfig
from culture.config.values import Count, Duration, Folder, Misfit, Settings

_SLUG = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST_SLUG = 20
Percent = Annotated[int, Field(ge=1, le=100)]
OPUS, SONNET, HAIKU = "claude-opus-4-6", "claude-sonnet-4-6", "claude-haiku-4-5"
ROLES = ("em", "manager", "implementer", "test_runner", "groucho", "chico", "zeppo", "fixer", "documenter")
"""All roles of members; the first two are not workers."""


def _slug(text: str) -> str:
    if len(text) > _LONGEST_SLUG or not _SLUG.fullmatch(text):
        raise ValueError(f"{text!r} is not a slug: a-z, 0-9 and single hyphens, at most {_LONGEST_SLUG} of them")
    return text


def _a_role(name: str) -> str:
    if name not in ROLES:
        raise ValueError(f"{name!r} is no role; there are {', '.join(ROLES)}")
    return name


Slug = Annotated[str, AfterValidator(_slug)]
RoleName = Annotated[str, AfterValidator(_a_role)]


class RoleConfig(Settings):
    """The backend and model of the agents that have a role in the team."""

    agent: str = "claude"
    model: str | None = None
    options: Mapping[str, object] = Field(default_factory=dict)
    """Further keys for such an agent, as in agents.yaml."""


DEFAULT_ROLES: Mapping[str, RoleConfig] = {
    role: RoleConfig(model={"em": OPUS, "manager": OPUS, "documenter": HAIKU}.get(role, SONNET)) for role in ROLES
}


class TeamLimits(Settings):
    """Limits on a team's size and work."""

    members: Count = 12
    per_task: Count = 4
    tasks: Count = 8
    attempts: Count = 3
    """Attempts at a review or a fix before people are asked."""


class Allowance(Settings):
    """A limit on what may be spent; None is no limit."""

    usd: Money | None = None
    tokens: Count | None = None


class TeamBudget(Settings):
    """Limits on what the whole team, one task and one member may spend."""

    team: Allowance = Field(default_factory=Allowance)
    task: Allowance = Field(default_factory=Allowance)
    member: Allowance = Field(default_factory=Allowance)


class TeamConfig(Settings):
    """The contents of team.yaml."""

    slug: Slug
    project_dir: Folder
    server: ServerAddress = Field(default_factory=ServerAddress)
    pm: tuple[str, ...] = ()
    """The nicks of people, for a server without accounts of people."""
    em_name: str = "Harper"
    em_model: str | None = None
    roles: dict[RoleName, RoleConfig] = Field(default_factory=dict)
    shift_threshold_pct: Percent = 90
    warn_pct: Percent = 80
    mcp_bridge_url: str | None = None
    wiki_mcp_url: str | None = None
    wiki_dir: Folder | None = None
    branch: str | None = None
    remote: str | None = None
    worktrees: str = ".worktrees"
    heartbeat: Duration = 30.0
    idle_check: Literal["process", "model"] = "process"
    heartbeat_backoff: tuple[Duration, ...] = (30.0, 60.0, 120.0)
    send_timeout: Duration = 300.0
    limits: TeamLimits = Field(default_factory=TeamLimits)
    budget: TeamBudget = Field(default_factory=TeamBudget)
    supervisor: SupervisorConfig = Field(default_factory=SupervisorConfig)
    webhooks: WebhookConfig = Field(default_factory=WebhookConfig)
    trust: TrustConfig | None = None
    wake: Wake = "accounts"
    sandbox: Sandbox = Field(default_factory=SandboxConfig)

    @model_validator(mode="after")
    def _check_warn_pct(self) -> Self:
        if self.warn_pct >= self.shift_threshold_pct:
            raise Misfit(f"warn_pct must be below shift_threshold_pct ({self.shift_threshold_pct})", "warn_pct")
        return self

    def role(self, name: str) -> RoleConfig:
        """Return backend and model of a role: the values in team.yaml, else the role's defaults."""
        default, own = DEFAULT_ROLES[name], self.roles.get(name)
        if name == "em" and self.em_model is not None and (own is None or own.model is None):
            default = default.model_copy(update={"model": self.em_model})
        if own is None:
            return default
        # Another backend has other models.
        model = default.model if own.agent == default.agent else None
        return own.model_copy(update={"model": own.model or model})

    @property
    def project_channel(self) -> str:
        """Return the name of the channel in which people talk with the EM."""
        return f"#project-{self.slug}"

    @property
    def standup_channel(self) -> str:
        """Return the name of the channel in which work is assigned and reported."""
        return f"#standup-{self.slug}"
