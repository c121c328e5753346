"""Serves a bridge: over HTTP, with limits per token, for many programs, or over stdio for one."""

import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from pydantic import AnyHttpUrl
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from culture.bridge.access import BridgeAccess, digest
from culture.bridge.bearer_tokens import BearerTokenVerifier, caller_of
from culture.bridge.callers import CallRate
from culture.bridge.client import BridgeClient
from culture.bridge.connection_pool import SecretOf
from culture.bridge.oauth import PATH, REGISTRATION, Consents, consent_page, no_consent
from culture.bridge.settings import BridgeSettings
from culture.bridge.tools import build
from culture.lib.ratelimit import SlidingWindow, Slots
from culture.mcp_http import http
from culture.mcp_http import server as mcp_server
from culture.mcp_http.admission import AdmissionCheck, own_names

log = logging.getLogger(__name__)

_LONGEST_REQUEST = 1024 * 1024
_EVERYWHERE = ("0.0.0.0", "::", "")
AT_ONCE = 64
"""Limit of open requests per token, streams included."""
SESSIONS, SESSION_LIFETIME = 100, 1800.0
"""Limit of sessions opened per token within the lifetime (s) of an unused session."""
_SESSION = "mcp-session-id"
_REMEMBERED = 1024


def application(
    settings: BridgeSettings, client: BridgeClient, access: BridgeAccess, pace: CallRate | None = None
) -> ASGIApp:
    """Return the ASGI application of a bridge: /mcp, /sse with /messages/, and the OAuth pages.

    ``pace``: the rate limit for tool calls, None for the default one.
    """
    wants_tokens = settings.is_exposed or access.exists
    server = _with_tokens(settings, client, access, pace) if wants_tokens else build(client, pace=pace)
    app = mcp_server.pages(server, _LONGEST_REQUEST)
    if wants_tokens:
        return AdmissionCheck(TokenQuotas(app), "bridge", _names(settings), origin=settings.mcp_public_url or "")
    return AdmissionCheck(
        app,
        "bridge",
        _names(settings),
        strangers="without a token only the user who runs the bridge may call it",
        refuse_all=lambda: "there are tokens now: restart the bridge" if access.exists else None,
    )


def _names(settings: BridgeSettings) -> frozenset[str]:
    public = urlsplit(settings.mcp_public_url or "").hostname
    bound = None if settings.mcp_host in _EVERYWHERE else settings.mcp_host
    return own_names(*settings.mcp_hosts, *filter(None, (public, bound)))


def _with_tokens(
    settings: BridgeSettings, client: BridgeClient, access: BridgeAccess, pace: CallRate | None
) -> MCPServer[Any]:
    url = settings.mcp_public_url
    if url is None:
        auth = AuthSettings(issuer_url=AnyHttpUrl(f"http://localhost:{settings.mcp_port}"), resource_server_url=None)
        server = build(client, caller_of=caller_of, pace=pace, auth=auth, verifier=BearerTokenVerifier(access))
        server.custom_route(REGISTRATION, ["POST"])(no_consent)
        return server
    consents = Consents(access, url)
    auth = AuthSettings.model_validate(
        {
            "issuer_url": url,  # as text: AnyHttpUrl would append a slash, which is another issuer
            "resource_server_url": f"{url}/mcp",
            "validate_token_resource": False,  # our tokens are in our file; no other token is valid here
            "client_registration_options": ClientRegistrationOptions(enabled=True),
            "revocation_options": RevocationOptions(enabled=True),
        }
    )
    server = build(client, caller_of=caller_of, pace=pace, auth=auth, provider=consents)
    server.custom_route(PATH, ["GET", "POST"])(consent_page(consents))
    return server


@asynccontextmanager
async def serving(
    settings: BridgeSettings, access: BridgeAccess, secret_of: SecretOf, pace: CallRate | None = None
) -> AsyncIterator[int]:
    """Run a bridge over HTTP during the block and yield its port.

    ``secret_of`` returns the stored token of a nick's account, or None. ``pace``: the rate limit for tool calls, None
    for the default one.
    """
    if settings.trusted_network and settings.is_exposed:
        log.warning("trusted_network: %s can be reached without TLS", settings.mcp_host)
    client = BridgeClient(settings, secret_of)
    with http.listening(settings.mcp_host, settings.mcp_port) as listener:
        port: int = listener.getsockname()[1]
        app = application(settings.model_copy(update={"mcp_port": port}), client, access, pace)
        async with client.running(), http.serving(app, listener, settings.mcp_tls_cert, settings.mcp_tls_key):
            yield port


async def serve_stdio(settings: BridgeSettings, secret_of: SecretOf) -> None:
    """Run a bridge for the parent process over stdio until stdin is closed.

    ``secret_of`` returns the stored token of a nick's account, or None.
    """
    client = BridgeClient(settings, secret_of)
    async with client.running():
        await mcp_server.serve_stdio(build(client))


class TokenQuotas:
    """ASGI middleware that limits the open requests and the MCP sessions of each bearer token."""

    def __init__(self, app: ASGIApp, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._clock = clock
        self._open = Slots()
        self._sessions = SlidingWindow(_REMEMBERED)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 429 if its bearer token has too many requests or sessions."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        key = digest(headers.get("authorization", ""))
        has_session = _SESSION in headers

        async def send_and_count(message: Message) -> None:
            is_start = message["type"] == "http.response.start"
            if is_start and not has_session and _SESSION in Headers(raw=message["headers"]):
                self._sessions.add(key, self._clock())
            await send(message)

        if not self._open.take(key, AT_ONCE):
            await PlainTextResponse(f"at most {AT_ONCE} requests at once", 429)(scope, receive, send)
            return
        try:
            if not has_session and self._sessions.count(key, SESSION_LIFETIME, self._clock()) >= SESSIONS:
                await PlainTextResponse(f"at most {SESSIONS} sessions", 429)(scope, receive, send)
            else:
                await self._app(scope, receive, send_and_count)
        finally:
            self._open.release(key)
