"""Settings of the web page, and the objects that all requests share while it runs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from culture.config.model import ServerConfig
from culture.config.services import WebConfig
from culture.transport import Address
from culture.web.sessions import LoginVersion

if TYPE_CHECKING:  # commands that need only the settings must not load what serves the page
    from culture.web.connection_pool import WebConnectionPool
    from culture.web.ledger_client import LedgerClient
    from culture.web.login_links import LoginLinks
    from culture.web.sessions import BrowserSessions
    from culture.web.throttle import LoginThrottle


@dataclass(frozen=True, slots=True)
class WebSettings:
    """Settings of the web page: its address, its IRC server, and its account there."""

    server: ServerConfig
    address: Address
    """Address of the IRC server."""
    account: str
    """The page's own account on the server."""
    token: str = field(repr=False)
    folder: Path
    port: int
    """Port that the page listens on."""
    login_version: LoginVersion
    """Returns the login version of an account of the server."""
    renewed_token: Callable[[], str | None] | None = None
    """Ensures that the page's own account exists and returns its token, before a new login; None if it cannot."""

    @property
    def web(self) -> WebConfig:
        """The section ``web`` of culture.yaml."""
        return self.server.web

    @property
    def url(self) -> str:
        """The URL of the web page as people type it."""
        if self.web.url:
            return self.web.url
        # Never localhost for 127.0.0.1: browsers try ::1 first, where another user of the machine may listen.
        host = f"[{self.web.host}]" if ":" in self.web.host else self.web.host
        return f"{'https' if self.web.tls else 'http'}://{host}:{self.port}"

    @property
    def is_secure(self) -> bool:
        """Whether people reach the web page over https."""
        return self.url.startswith("https:")

    def nick_of(self, account: str) -> str:
        """Return the nick of an account on the IRC server, with the server's prefix if it has one."""
        prefix = self.server.account_prefix
        return f"{prefix}-{account}" if prefix and not account.startswith(f"{prefix}-") else account


def data_folder(config: ServerConfig) -> Path:
    """Return the path of the folder where the web page stores its data."""
    return config.data_dir / "web"


@dataclass(frozen=True, slots=True)
class Site:
    """The objects that all requests of a running page share."""

    settings: WebSettings
    sessions: "BrowserSessions"
    links: "LoginLinks"
    connections: "WebConnectionPool"
    ledger: "LedgerClient"
    throttle: "LoginThrottle"
