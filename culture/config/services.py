"""What culture.yaml may say about the digest that is posted by itself."""

import re
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from culture.config.agents import AgentNick, Network, WebAddress
from culture.config.listen_policy import Tls, is_loopback
from culture.config.values import Channel, Count, Duration, Hidden, Misfit, Port, Settings

DAY = 86_400.0
_CLOCK = re.compile("([01][0-9]|2[0-3]):[0-5][0-9]")


def _clock(text: str) -> str:
    if not _CLOCK.fullmatch(text):
        raise ValueError(f"{text!r} is not a time of the day such as 08:00 (in quotes)")
    return text


class DigestConfig(Settings):
    """How often, where to, and whether an agent puts it into words."""

    every: Duration = DAY
    at: Annotated[str, AfterValidator(_clock)] | None = None
    channel: Channel | None = None
    webhook: WebAddress | None = Field(None, repr=False)
    format: Literal["auto", "discord", "slack", "ntfy", "json"] = "auto"
    allow_private: tuple[Network, ...] = ()
    summarise: AgentNick | None = None
    summary_timeout: Duration = 120.0

    @model_validator(mode="after")
    def _a_time_of_the_day_is_daily(self) -> Self:
        if self.at is not None and self.every != DAY:
            raise Misfit("goes with every: 24h alone", "at")
        return self

    @property
    def is_posted(self) -> bool:
        """Whether there is anywhere to post it."""
        return self.channel is not None or self.webhook is not None


_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:\[\]@/]+)):(?P<port>[0-9]{1,5})")


def _endpoint(address: str) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(address)
    if found is None or int(found["port"]) > 65535:
        raise ValueError(f"{address!r} is no address to listen on: it looks like 127.0.0.1:9464")
    return found["ipv6"] or found["host"], int(found["port"])


def _address(text: str) -> str:
    _endpoint(text)
    return text


class MetricsConfig(Settings):
    """Where they are read, in the format of Prometheus."""

    listen: Annotated[str, AfterValidator(_address)] | None = None

    @property
    def endpoint(self) -> tuple[str, int] | None:
        """The host and port to listen on; None: nowhere."""
        return None if self.listen is None else _endpoint(self.listen)

    @property
    def leaves_the_machine(self) -> bool:
        """Whether others can read them."""
        return self.endpoint is not None and not is_loopback(self.endpoint[0])


DEFAULT_PORT = 6680


def _page_address(text: str) -> str:
    """``https://chat.example.org``: where people find the page, without a path."""
    said = text.rstrip("/")
    parts = urlsplit(said)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query or parts.username:
        raise ValueError(f"{text!r} is no address of the page: it looks like https://chat.example.org, without a path")
    return said.lower()


def _push_address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or len(parts.path) < 2:
        raise ValueError("is no address of a topic: it looks like https://ntfy.sh/a-name-nobody-guesses")
    return text


PageAddress = Annotated[str, AfterValidator(_page_address)]
PushAddress = Annotated[str, AfterValidator(_push_address)]


class WebConfig(Settings):
    """Where the page is, what people call it, and whose phones it wakes."""

    host: str = "127.0.0.1"
    port: Port = DEFAULT_PORT
    url: PageAddress | None = None
    tls: Tls | None = None
    session_days: Count = 30
    push: Annotated[dict[str, PushAddress], Hidden()] = Field(default_factory=dict, repr=False)

    @model_validator(mode="after")
    def _strangers_meet_tls(self) -> Self:
        """Whoever runs it behind something that speaks TLS leaves it on loopback."""
        if self.url and self.tls and not self.url.startswith("https:"):
            raise Misfit("begins with https: where there is a certificate", "url")
        return self

    @property
    def is_exposed(self) -> bool:
        """Whether other machines can reach it."""
        return not is_loopback(self.host)
