"""What culture.yaml may say about the web page."""

from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from culture.config.exposure import Tls, is_loopback
from culture.config.values import Count, Hidden, Misfit, Port, Settings

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


class Web(Settings):
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
