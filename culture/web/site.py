"""What all pages share, from the start of the page to its end."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from culture.config.model import ServerConfig
from culture.config.services import WebConfig
from culture.transport import Address
from culture.web.connection_pool import WebConnectionPool
from culture.web.ledger_client import LedgerClient
from culture.web.login_links import Links
from culture.web.sessions import BrowserSessions, Standing
from culture.web.throttle import LoginThrottle


@dataclass(frozen=True, slots=True)
class WebSettings:
    """Where the page is, which server it shows, and how it logs in there."""

    server: ServerConfig
    address: Address
    """Of the IRC server."""
    account: str
    """Of the page itself."""
    token: str = field(repr=False)
    folder: Path
    port: int
    """That the page listens on."""
    standing: Standing
    """Of the accounts of the server."""
    renewed_token: Callable[[], str | None] | None = None
    """Makes sure of the page's own account once more, before a new login; None where that cannot be done at present."""

    @property
    def web(self) -> WebConfig:
        """What culture.yaml says of the page."""
        return self.server.web

    @property
    def url(self) -> str:
        """Where people find it."""
        if self.web.url:
            return self.web.url
        # Never localhost for 127.0.0.1: browsers look at ::1 first, where another user of the machine may listen.
        shown = f"[{self.web.host}]" if ":" in self.web.host else self.web.host
        return f"{'https' if self.web.tls else 'http'}://{shown}:{self.port}"

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach it over TLS alone."""
        return self.url.startswith("https:")

    def nick_of(self, account: str) -> str:
        """The nick of an account on this server."""
        prefix = self.server.account_prefix
        return f"{prefix}-{account}" if prefix and not account.startswith(f"{prefix}-") else account


def data_folder(config: ServerConfig) -> Path:
    """Where the page keeps what it remembers."""
    return config.data_dir / "web"


@dataclass(frozen=True, slots=True)
class Site:
    """The parts of a page that runs."""

    settings: WebSettings
    sessions: BrowserSessions
    links: Links
    seats: WebConnectionPool
    ledger: LedgerClient
    throttle: LoginThrottle
