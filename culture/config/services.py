"""The ``digest``, ``metrics`` and ``web`` blocks of culture.yaml."""

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
    """When and where the digest is posted, and which agent puts it into words."""

    every: Duration = DAY
    at: Annotated[str, AfterValidator(_clock)] | None = None
    channel: Channel | None = None
    webhook: WebAddress | None = Field(None, repr=False)
    format: Literal["auto", "discord", "slack", "ntfy", "json"] = "auto"
    allow_private: tuple[Network, ...] = ()
    summarise: AgentNick | None = None
    summary_timeout: Duration = 120.0

    @model_validator(mode="after")
    def _check_at(self) -> Self:
        if self.at is not None and self.every != DAY:
            raise Misfit("goes with every: 24h alone", "at")
        return self

    @property
    def is_posted(self) -> bool:
        """Return whether the digest is posted at all: to a channel or a webhook."""
        return self.channel is not None or self.webhook is not None


_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:\[\]@/]+)):(?P<port>[0-9]{1,5})")


def _endpoint(address: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match["port"]) > 65535:
        raise ValueError(f"{address!r} is not an address to listen on such as 127.0.0.1:9464")
    return match["ipv6"] or match["host"], int(match["port"])


def _address(text: str) -> str:
    _endpoint(text)
    return text


class MetricsConfig(Settings):
    """The address at which metrics can be read, in Prometheus' format."""

    listen: Annotated[str, AfterValidator(_address)] | None = None

    @property
    def endpoint(self) -> tuple[str, int] | None:
        """Return host and port on which metrics can be read; None if metrics are off."""
        return None if self.listen is None else _endpoint(self.listen)

    @property
    def leaves_the_machine(self) -> bool:
        """Return whether other machines can read the metrics."""
        return self.endpoint is not None and not is_loopback(self.endpoint[0])


DEFAULT_PORT = 6680


def _page_address(text: str) -> str:
    """Return the public URL of the web page in normal form.

    Raises ValueError for text that is no http(s) URL without a path.
    """
    address = text.rstrip("/")
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query or parts.username:
        raise ValueError(f"{text!r} is not an address such as https://chat.example.org, without a path")
    return address.lower()


def _push_address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or len(parts.path) < 2:
        raise ValueError("is not a topic's address such as https://ntfy.sh/a-name-nobody-guesses")
    return text


PageAddress = Annotated[str, AfterValidator(_page_address)]
PushAddress = Annotated[str, AfterValidator(_push_address)]


class WebConfig(Settings):
    """The web page: its address, TLS, sessions, and push notifications."""

    host: str = "127.0.0.1"
    port: Port = DEFAULT_PORT
    url: PageAddress | None = None
    tls: Tls | None = None
    session_days: Count = 30
    push: Annotated[dict[str, PushAddress], Hidden()] = Field(default_factory=dict, repr=False)

    @model_validator(mode="after")
    def _check_url(self) -> Self:
        """Raise Misfit if the page has a TLS certificate and ``url`` does not begin with https.

        A page behind a proxy that speaks TLS has no ``tls`` block.
        """
        if self.url and self.tls and not self.url.startswith("https:"):
            raise Misfit("must begin with https: since there is a certificate", "url")
        return self

    @property
    def is_exposed(self) -> bool:
        """Return whether other machines can reach the web page directly."""
        return not is_loopback(self.host)
