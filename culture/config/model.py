"""What culture.yaml may say: the frozen model of a server's configuration."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from culture.config import paths
from culture.config.values import Count, Duration, Secret, as_path, channel_name

_SHORT_NAME = re.compile(r"[a-z][a-z0-9]{0,11}")
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*")

Folder = Annotated[Path, BeforeValidator(as_path)]
Port = Annotated[int, Field(ge=0, le=65535)]
Channel = Annotated[str, AfterValidator(channel_name)]


class Settings(BaseModel):
    """A block of settings: nothing unknown in it, nothing changed after loading."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Listen(Settings):
    """One address the server accepts connections on; port 0 takes any free one."""

    host: str = "127.0.0.1"
    port: Port = 6667


class Admin(Settings):
    """Whom to ask about this server (ADMIN)."""

    location1: str = ""
    location2: str = ""
    email: str = ""


class Operator(Settings):
    """Somebody who may become IRC operator with OPER."""

    name: str = Field(min_length=1)
    password: Secret = Field(min_length=1, repr=False)


class Limits(Settings):
    """How much, how long, how often. Durations are seconds, sizes are bytes."""

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
    modes: Count = 12
    whowas: Count = 1000
    registration_timeout: Duration = 60.0
    ping_after: Duration = 90.0
    ping_timeout: Duration = 150.0
    shutdown_timeout: Duration = 10.0
    send_queue: Count = 98304
    agent_send_queue: Count = 524288
    pull_queue: Count = 32768

    @model_validator(mode="after")
    def _ping_comes_before_the_end(self) -> Self:
        if self.ping_timeout <= self.ping_after:
            raise ValueError("ping_timeout must be longer than ping_after, else nobody could answer the PING")
        return self


def _default_data_dir(said: dict[str, Any]) -> Path:
    return paths.data_dir(said.get("name", "culture"))


class ServerConfig(Settings):
    """One server: its name, where it listens, whom it serves and within which limits."""

    name: str = Field(default_factory=paths.default_server_name)
    description: str = "culture IRC server"
    network: str = Field("culture", pattern=r"^\S+$")
    nick_prefix: Literal["required", "off"] = "required"
    listen: tuple[Listen, ...] = Field((Listen(),), min_length=1)
    data_dir: Folder = Field(default_factory=_default_data_dir)
    password: Secret | None = Field(None, repr=False)
    motd: str = "Welcome. Say hello in #general."
    admin: Admin = Admin()
    channels: tuple[Channel, ...] = ("#general",)
    operators: tuple[Operator, ...] = ()
    channel_modes: str = Field("nt", pattern=r"^[A-Za-z]*$")
    limits: Limits = Limits()

    @model_validator(mode="after")
    def _name_fits_the_nicks(self) -> Self:
        """The owner of a nick is the text before its first hyphen, so a prefix must not have one."""
        label = self.name.split(".")[0]
        if not _HOST_NAME.fullmatch(self.name) or len(self.name) > 63:
            raise ValueError("name must look like a host name, for example spark or spark.local")
        if self.nick_prefix == "required" and not _SHORT_NAME.fullmatch(label):
            raise ValueError(
                f"name must begin with a label of 1 to 12 of a-z and 0-9, a letter first, without a hyphen: "
                f"every nick begins with it ({label!r} does not fit)"
            )
        return self

    @property
    def short_name(self) -> str:
        """The first label of the name: the prefix of every local nick."""
        return self.name.split(".")[0]
