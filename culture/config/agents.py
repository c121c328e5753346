"""agents.yaml: the agents on this machine, and the rules they work under."""

import logging
import math
import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from culture.config.sandbox import Sandbox, SandboxConfig
from culture.config.values import (
    Channel,
    Count,
    Duration,
    File,
    Fingerprint,
    Folder,
    Misfit,
    Port,
    Secret,
    Settings,
    SystemUser,
    seconds,
)
from culture.protocol.names import fold, nearest, owner, short_name, valid_local_nick, valid_short_name
from culture.protocol.vocabulary import WellKnownChannel as WellKnown

log = logging.getLogger(__name__)

_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9]"
_QUIET = re.compile(rf"{_CLOCK}-{_CLOCK}")

# Extra fields of an agent by backend. The loader can be given another table, from the installed backends.
BACKEND_FIELDS: Mapping[str, frozenset[str]] = {
    "claude": frozenset({"permission_mode", "allowed_tools", "mcp_servers"}),
    "codex": frozenset({"approval_policy", "sandbox_mode"}),
    "copilot": frozenset({"copilot_path", "permission_mode", "provider"}),
    "acp": frozenset({"acp_command", "acp_mode", "permissions", "mcp_servers"}),
    "scripted": frozenset({"playbook"}),
}

AlertEvent = Literal["agent_question", "agent_spiraling", "agent_timeout", "agent_error", "agent_complete"]
ALERT_EVENTS: tuple[AlertEvent, ...] = (
    "agent_question",
    "agent_spiraling",
    "agent_timeout",
    "agent_error",
    "agent_complete",
)
# Two interventions must fail before people are alerted.
LEAST_ESCALATION_THRESHOLD = 3
NO_SUPERVISOR = "none"


def _agent_nick(nick: str) -> str:
    if not valid_short_name(owner(nick)) or not valid_local_nick(nick, owner(nick)):
        raise ValueError(f"{nick!r} is not a nick of the form <server>-<name>, for example spark-culture")
    return nick


def _at_least_three(threshold: int) -> int:
    if threshold < LEAST_ESCALATION_THRESHOLD:
        log.warning("escalation_threshold %d counts as %d", threshold, LEAST_ESCALATION_THRESHOLD)
    return max(threshold, LEAST_ESCALATION_THRESHOLD)


def _off_or_count(value: object) -> object:
    if value is None or (isinstance(value, str) and value != "off"):
        raise ValueError("expected a whole number or off")
    return None if value == "off" else value


def _off_or_seconds(value: object) -> object:
    return math.inf if value == "off" else seconds(value)


def _backend_name(name: str, info: ValidationInfo) -> str:
    fields = _backend_fields(info)
    if name not in fields:
        raise ValueError(f"{name!r} is no backend; there are {', '.join(sorted(fields))}")
    return name


def _backend_or_none(name: str, info: ValidationInfo) -> str:
    # A known backend that is not installed must not keep an agent from starting.
    return name if name == NO_SUPERVISOR or name in BACKEND_FIELDS else _backend_name(name, info)


def _backend_fields(info: ValidationInfo) -> Mapping[str, frozenset[str]]:
    return info.context if info.context is not None else BACKEND_FIELDS


def _unknown_field(key: str, value: object, backend: str, fields: Mapping[str, frozenset[str]]) -> InitErrorDetails:
    """Return the validation error for a setting ``key`` that agents of this backend do not have.

    ``value``: the setting's value in the file; ``fields``: by backend, the settings that only its agents have.
    """
    elsewhere = [name for name, keys in fields.items() if key in keys]
    suggestion = nearest(key, fields[backend])
    if elsewhere:
        text = f"only for agents of backend {' or '.join(elsewhere)}, and this one is {backend}"
    elif suggestion:
        text = f"unknown key (did you mean {suggestion}?)"
    else:
        return InitErrorDetails(type="extra_forbidden", loc=(key,), input=value)
    return InitErrorDetails(type=PydanticCustomError("backend_field", text), loc=(key,), input=value)


def _is_quiet_hours(text: str) -> str:
    if not _QUIET.fullmatch(text):
        raise ValueError(f"{text!r} is not a span of the day such as 22:00-07:00")
    return text


def _web_address(address: str) -> str:
    # The address is not quoted: whoever knows it may post.
    if not re.match(r"https?://[^/\s]", address):
        raise ValueError("expected an address that begins with https:// or http://")
    return address


def _network(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return ip_network(value)
    except ValueError:
        raise ValueError(f"{value!r} is not an address or network such as 192.168.1.7 or 10.0.0.0/8") from None


WebAddress = Annotated[Secret, AfterValidator(_web_address)]
Network = Annotated[IPv4Network | IPv6Network, BeforeValidator(_network)]
Money = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=False)]
AgentNick = Annotated[str, AfterValidator(_agent_nick)]
BackendName = Annotated[str, AfterValidator(_backend_name)]
SupervisorName = Annotated[str, AfterValidator(_backend_or_none)]
QuietHours = Annotated[str, AfterValidator(_is_quiet_hours)]
Pause = Annotated[float, Field(ge=0, allow_inf_nan=False), BeforeValidator(seconds)]
OffOrCount = Annotated[Annotated[int, Field(ge=1)] | None, BeforeValidator(_off_or_count)]
OffOrDuration = Annotated[float, Field(gt=0), BeforeValidator(_off_or_seconds)]
Wake = Literal["humans", "accounts", "anybody"]
"""Who may wake an agent with a message."""
Attention = Literal["all", "mention", "none"]
"""Which messages of a channel are for an agent: all, those that mention it, or none."""


class ServerAddress(Settings):
    """The address of the server that the agents connect to."""

    name: str | None = None
    host: str = "localhost"
    port: Port = 6667
    tls: bool = False
    fingerprint: Fingerprint | None = None
    user: SystemUser | None = None


class SupervisorConfig(Settings):
    """Settings of the supervisor, a second model that observes an agent and sends it whispers."""

    agent: SupervisorName = "claude"
    model: str = "claude-sonnet-4-6"
    thinking: str = "medium"
    window_size: Count = 20
    eval_interval: Count = 5
    escalation_threshold: Annotated[Count, AfterValidator(_at_least_three)] = LEAST_ESCALATION_THRESHOLD
    timeout: Duration = 60.0
    check_in: Duration = 600.0
    compact_at: Annotated[int, Field(ge=1, le=100)] = 80
    playbook: str | None = None
    options: Mapping[str, Any] = Field(default_factory=dict)


class WebhookConfig(Settings):
    """Where alerts go: one address for all events, or one for each kind. An address is a secret."""

    url: WebAddress | None = Field(None, repr=False)
    irc_channel: Channel = WellKnown.ALERTS.value
    events: tuple[AlertEvent, ...] = ALERT_EVENTS
    on_question: WebAddress | None = Field(None, repr=False)
    on_spiraling: WebAddress | None = Field(None, repr=False)
    on_timeout: WebAddress | None = Field(None, repr=False)
    on_error: WebAddress | None = Field(None, repr=False)
    on_complete: WebAddress | None = Field(None, repr=False)
    format: Literal["auto", "discord", "slack", "ntfy", "json"] = "auto"
    secret: Secret | None = Field(None, repr=False)
    link: str | None = None
    allow_private: tuple[Network, ...] = ()
    attempts: Count = 1
    timeout: Duration = 10.0


class TrustConfig(Settings):
    """Who may answer an agent's question, and what happens without an answer."""

    humans: Literal["always", "confirmed"] = "always"
    agents: Literal["never", "first", "vote", "consensus"] = "never"
    timeout: Duration = 1800.0
    timeout_action: Literal["pause", "deny", "abort"] = "pause"
    quorum: Count | None = None


class BudgetConfig(Settings):
    """What an agent may spend; None is no limit. A subscription's cost is an estimate."""

    billing: Literal["auto", "metered", "subscription"] = "auto"
    tokens_per_day: Count | None = None
    usd_per_day: Money | None = None
    turns_per_day: Count | None = None
    tokens_total: Count | None = None
    usd_total: Money | None = None
    window_pct: Annotated[int, Field(ge=1, le=100)] = 100
    resume_after_limit: bool | None = None
    """None: yes with a subscription, whose limits reset by themselves."""


class RecoveryConfig(Settings):
    """What the daemon does when an agent's program crashes or hangs."""

    restart_delay: Duration = 5.0
    crashes: Count = 3
    window: Duration = 300.0
    silence: Duration = 600.0
    interrupt_grace: Duration = 30.0


class Rules(Settings):
    """Settings at the top of agents.yaml for all agents; each may be repeated for one agent."""

    supervisor: SupervisorConfig = Field(default_factory=SupervisorConfig)
    webhooks: WebhookConfig = Field(default_factory=WebhookConfig)
    trust: TrustConfig | None = None
    wake: Wake = "accounts"
    budget: BudgetConfig = Field(default_factory=BudgetConfig)
    max_hops: OffOrCount = 6
    pair_turns_per_hour: Count = 40
    pair_turns_reset: bool = False
    channel_turns_per_hour: Count = 200
    wake_most: OffOrCount = 8
    cool_down: Pause = 2.0
    buffer_size: Count = 500
    stale: Duration = 900.0
    quiet_hours: QuietHours | None = None
    recovery: RecoveryConfig = Field(default_factory=RecoveryConfig)
    sandbox: Sandbox = Field(default_factory=SandboxConfig)


class TeamPlace(Settings):
    """Settings of an agent that belongs to a team: who hires, the team's channel, and its wiki."""

    orchestrator: AgentNick
    channel: Channel
    wiki: Folder | None = None
    """The folder of the team's wiki; None if it is not on this machine."""


class AgentConfig(Rules):
    """One agent: its nick, folder, channels and backend."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, object]

    nick: AgentNick
    directory: Folder
    channels: tuple[Channel, ...]
    rooms: Mapping[Channel, Attention] = Field(default_factory=dict)
    agent: BackendName = "claude"
    model: str | None = None
    thinking: str = "medium"
    tags: tuple[str, ...] = ()
    user: str | None = None
    may_call_all: bool = False
    on_crash: Literal["resume", "fresh"] = "resume"
    mentions_while_busy: Literal["buffer", "inject"] = "buffer"
    ask_bound: OffOrDuration | None = None
    post_output: Literal["auto", "always", "never"] = "auto"
    join_matching: bool = False
    greeting: str | None = None
    instructions_file: File | None = None
    team: TeamPlace | None = None

    @model_validator(mode="before")
    @classmethod
    def _reject_fields_of_other_backends(cls, values: object, info: ValidationInfo) -> object:
        backend = str(values.get("agent", "claude")) if isinstance(values, Mapping) else ""
        fields = _backend_fields(info)
        if isinstance(values, Mapping) and backend in fields:
            allowed = fields[backend] | cls.model_fields.keys()
            errors = [_unknown_field(key, values[key], backend, fields) for key in values if key not in allowed]
            if errors:
                raise ValidationError.from_exception_data(cls.__name__, errors)
        return values

    def attention(self, channel: str) -> Attention:
        """Return which messages of a channel prompt the agent: its setting, else only mentions."""
        return next((attention for name, attention in self.rooms.items() if fold(name) == fold(channel)), "mention")

    @property
    def backend_options(self) -> Mapping[str, object]:
        """Return the settings of this agent that only its backend understands, as they are written."""
        return self.__pydantic_extra__


class AgentsConfig(Rules):
    """The contents of agents.yaml."""

    server: ServerAddress = Field(default_factory=ServerAddress)
    people: tuple[str, ...] = ()
    """The nicks of people, for a server without accounts of people."""
    agents: tuple[AgentConfig, ...] = ()

    @model_validator(mode="after")
    def _check_nicks(self) -> Self:
        seen: set[str] = set()
        for number, agent in enumerate(self.agents):
            if fold(agent.nick) in seen:
                raise Misfit(f"{agent.nick} is there twice", "agents", number, "nick")
            if self.server.name and owner(agent.nick) != short_name(self.server.name):
                expected = f"{short_name(self.server.name)}-"
                raise Misfit(f"{agent.nick} must begin with {expected}, the server's name", "agents", number, "nick")
            seen.add(fold(agent.nick))
        return self

    def agent(self, nick: str) -> AgentConfig | None:
        """Return the agent with that nick, with the rules for all agents merged in.

        None if none has it.
        """
        for agent in self.agents:
            if fold(agent.nick) == fold(nick):
                return agent.model_copy(update={name: _merged(self, agent, name) for name in Rules.model_fields})
        return None


Block = TypeVar("Block", bound=Settings)


def _merged(top: Rules, own: Rules, name: str) -> object:
    """Return the value of the rule ``name`` for an agent: its own, else that for all agents.

    A block of settings is merged key by key. ``top``: the rules for all agents; ``own``: those of the agent.
    """
    own_value, default = getattr(own, name), getattr(top, name)
    if name not in own.model_fields_set:
        return default
    return (
        _overlaid(default, own_value)
        if isinstance(default, Settings) and isinstance(own_value, Settings)
        else own_value
    )


def _overlaid(under: Block, over: Block) -> Block:
    return under.model_copy(update={name: getattr(over, name) for name in over.model_fields_set})
