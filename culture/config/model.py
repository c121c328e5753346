"""culture.yaml: the frozen model of a server's configuration."""

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from culture.config import listen_policy, paths
from culture.config import skills as builtin
from culture.config.links import Federation, LinkConfig, check_links
from culture.config.oidc import Oidc
from culture.config.services import DigestConfig, MetricsConfig, WebConfig
from culture.config.values import (
    Count,
    Duration,
    Folder,
    Misfit,
    NewChannel,
    Port,
    Secret,
    ServerName,
    Settings,
    is_given,
)
from culture.protocol.names import short_name, valid_short_name
from culture.protocol.vocabulary import WellKnownChannel as WellKnown

# Channel modes without a parameter.
CHANNEL_FLAGS = "imnstCD"

# Settings that a running server cannot change; a reload reports them.
NEEDS_RESTART = frozenset(
    {
        "name",
        "nick_prefix",
        "listen",
        "trusted_network",
        "data_dir",
        "accounts_file",
        "oidc",
        "channels",
        "limits.whowas",
        "limits.redactable",
        "history",
        "logger",
        "urlindex",
        "rooms",
        "ledger",
        "audit",
        "skills",
        "federation",
        "metrics",
    }
)


def _one_word(text: str) -> str:
    if not text or re.search(r"[\s\x00-\x20]", text):
        raise ValueError(f"{text!r} must be one word")
    return text


def _one_line(text: str) -> str:
    if re.search(r"[\r\n\0]", text):
        raise ValueError("must be one line; a block that begins with | or > ends with a line break")
    return text


def _mode_letters(text: str) -> str:
    if not set(text) <= set(CHANNEL_FLAGS):
        raise ValueError(f"{text!r} must be letters of {CHANNEL_FLAGS}, for example nt")
    return text


Line = Annotated[str, AfterValidator(_one_line)]
Word = Annotated[str, AfterValidator(_one_word)]
ModeLetters = Annotated[str, AfterValidator(_mode_letters)]


class Listen(Settings):
    """An address on which the server listens; port 0 lets the system choose a free port."""

    host: str = "127.0.0.1"
    port: Port = 6667
    tls: listen_policy.Tls | None = None
    websocket: listen_policy.WebSocket | None = None

    @property
    def is_loopback(self) -> bool:
        """Return whether this listener can be reached from this machine only."""
        return listen_policy.is_loopback(self.host)


def _at_least_one(listen: tuple[Listen, ...]) -> tuple[Listen, ...]:
    if not listen:
        raise ValueError("needs at least one address")
    return listen


class Admin(Settings):
    """The contact of this server, which the command ADMIN shows."""

    location1: Line = ""
    location2: Line = ""
    email: Line = ""


class Operator(Settings):
    """A name and password with which a user becomes an IRC operator (OPER)."""

    name: Word
    password: Secret = Field(repr=False)


class ServerLimits(Settings):
    """Limits of a server: sizes in bytes, durations in seconds, and counts."""

    nick_length: Count = 32
    channel_length: Count = 64
    topic_length: Count = 390
    away_length: Count = 200
    kick_length: Count = 390
    realname_length: Count = 150
    user_length: Count = 16
    channels_per_client: Count = 100
    list_entries: Count = 100
    targets: Count = 4
    monitor: Count = 100
    metadata_keys: Count = 50
    metadata_subs: Count = 50
    metadata_key: Count = 64
    metadata_value: Count = 300
    registered_channels: Count = 50
    multiline_bytes: Count = 4096
    multiline_lines: Count = 100
    multiline_timeout: Duration = 30.0
    redactable: Count = 1000
    read_markers: Count = 500
    modes: Count = 12
    whowas: Count = 1000
    registration_timeout: Duration = 60.0
    ping_after: Duration = 90.0
    ping_timeout: Duration = 150.0
    shutdown_timeout: Duration = 10.0
    send_queue: Count = 98304
    agent_send_queue: Count = 524288
    pull_queue: Count = 32768
    connections_per_address: Count = 16
    connections_per_user: Count = 256
    unregistered_connections: Count = 2048
    new_connections: Count = 32
    new_connections_period: Duration = 600.0
    rows: Count = 1000
    failed_logins: Count = 3
    failed_logins_period: Duration = 60.0
    new_accounts: Count = 3
    new_accounts_period: Duration = 3600.0

    @model_validator(mode="after")
    def _check_ping_timeout(self) -> Self:
        if self.ping_timeout <= self.ping_after:
            raise Misfit("must be longer than ping_after, else nobody could answer the PING", "ping_timeout")
        return self


class Rate(Settings):
    """A token bucket: ``burst`` commands at once, ``rate`` per second; a rate of 0 is no limit."""

    burst: Count = 5
    rate: float = Field(2.0, ge=0)


class Flood(Settings):
    """Rate limits for remote clients, agents with an account, and clients on this machine."""

    clients: Rate = Field(default_factory=Rate)
    agents: Rate = Field(default_factory=lambda: Rate(burst=100, rate=20.0))
    loopback: Rate = Field(default_factory=lambda: Rate(burst=500, rate=100.0))


def _network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError as wrong:
        raise ValueError(f"{text!r} is not a network, for example 192.0.2.0/24") from wrong


Network = Annotated[str, AfterValidator(_network)]


def _default_data_dir(values: dict[str, Any]) -> Path:
    return paths.data_dir(values.get("name", "culture"))


class ServerConfig(Settings):
    """One server: its name, listeners, accounts, limits and skills."""

    name: ServerName = Field(default_factory=paths.default_server_name)
    description: Line = "culture IRC server"
    network: Word = "culture"
    nick_prefix: Literal["required", "off"] = "required"
    listen: Annotated[tuple[Listen, ...], AfterValidator(_at_least_one)] = Field(default_factory=lambda: (Listen(),))
    trusted_network: bool = False
    local_users: tuple[str, ...] = ()
    self_registration: Literal["off", "inside", "anybody"] = "off"
    accounts_file: Folder = Field(default_factory=paths.accounts_file)
    oidc: Oidc | None = None
    data_dir: Folder = Field(default_factory=_default_data_dir)
    password: Annotated[Secret | None, BeforeValidator(is_given)] = Field(None, repr=False)
    motd: str = f"Welcome. Say hello in {WellKnown.GENERAL}."
    admin: Admin = Field(default_factory=Admin)
    channels: tuple[NewChannel, ...] = (WellKnown.GENERAL.value,)
    operators: tuple[Operator, ...] = ()
    channel_modes: ModeLetters = "nt"
    exempt: tuple[Network, ...] = ("127.0.0.0/8", "::1/128")
    flood: Flood = Field(default_factory=Flood)
    limits: ServerLimits = Field(default_factory=ServerLimits)
    history: builtin.HistoryConfig = Field(default_factory=builtin.HistoryConfig)
    logger: builtin.LoggerConfig = Field(default_factory=builtin.LoggerConfig)
    urlindex: builtin.UrlIndexConfig = Field(default_factory=builtin.UrlIndexConfig)
    rooms: builtin.RoomsConfig = Field(default_factory=builtin.RoomsConfig)
    ledger: builtin.LedgerConfig = Field(default_factory=builtin.LedgerConfig)
    audit: builtin.AuditConfig = Field(default_factory=builtin.AuditConfig)
    skills: builtin.Others = Field(default_factory=dict, repr=False)
    links: tuple[LinkConfig, ...] = ()
    federation: Federation = Field(default_factory=Federation)
    metrics: MetricsConfig = Field(default_factory=MetricsConfig)
    web: WebConfig = Field(default_factory=WebConfig)
    digest: DigestConfig = Field(default_factory=DigestConfig)

    @model_validator(mode="after")
    def _check_name(self) -> Self:
        """Raise Misfit if the server's short name cannot be the prefix of nicks, as with a hyphen."""
        if self.nick_prefix == "required" and not valid_short_name(self.short_name):
            better = paths.made_short(self.name)
            raise Misfit(
                f"{self.short_name!r} begins every nick, so it must be 1 to 12 of a-z and 0-9, a letter first"
                + (f": try {better}" if valid_short_name(better) else ""),
                "name",
            )
        return self

    @model_validator(mode="after")
    def _check_listen_tls(self) -> Self:
        for position, each in enumerate(self.listen):
            if not (each.is_loopback or each.tls or self.trusted_network):
                raise Misfit(listen_policy.unprotected(each.host), "listen", position, "host")
        return self

    @model_validator(mode="after")
    def _check_nick_length(self) -> Self:
        if self.nick_prefix == "required" and self.limits.nick_length < len(self.short_name) + 2:
            raise Misfit(f"leaves no room behind {self.short_name}-", "limits", "nick_length")
        return self

    @model_validator(mode="after")
    def _check_skills(self) -> Self:
        for name in self.built_in():
            if name in self.skills:
                raise Misfit(f"comes with the server: its block {name} stands at the top of the file", "skills", name)
        return self

    @model_validator(mode="after")
    def _check_links(self) -> Self:
        if self.links and self.nick_prefix != "required":
            raise Misfit("must be required on a server with links: nicks are unique by their prefix", "nick_prefix")
        listeners = {(each.host, each.port) for each in self.listen}
        check_links(self.links, self.short_name, self.trusted_network, listeners)
        return self

    @model_validator(mode="after")
    def _check_metrics(self) -> Self:
        if self.metrics.leaves_the_machine and not self.trusted_network:
            raise Misfit(
                f"{self.metrics.listen} can be reached from other machines, and metrics need no login: "
                "only trusted_network: true allows it",
                "metrics",
                "listen",
            )
        return self

    @model_validator(mode="after")
    def _check_web_tls(self) -> Self:
        if self.web.is_exposed and not (self.web.tls or self.trusted_network):
            raise Misfit(listen_policy.unprotected(self.web.host), "web", "host")
        return self

    def built_in(self) -> dict[str, builtin.Builtin]:
        """Return the settings of each built-in skill, by its name."""
        return {
            "history": self.history,
            "logger": self.logger,
            "urlindex": self.urlindex,
            "rooms": self.rooms,
            "ledger": self.ledger,
            "audit": self.audit,
        }

    @property
    def account_prefix(self) -> str:
        """Return the prefix of accounts' nicks: the server's short name, "" if nicks need none."""
        return self.short_name if self.nick_prefix == "required" else ""

    @property
    def short_name(self) -> str:
        """Return the first label of the server's name, which is the prefix of its users' nicks."""
        return short_name(self.name)
