"""Bearer tokens: checks the token of each request and returns its caller."""

import logging
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.mcpserver import Context

from culture.bridge.access import BridgeAccess, BrokenAccessFile
from culture.bridge.callers import Caller
from culture.transport import NotSent

log = logging.getLogger(__name__)


class BearerToken(AccessToken):
    """A valid access token, and the nicks that the program with this token may use (``caller``)."""

    caller: Caller


class BearerTokenVerifier:
    """Verifies the bearer tokens of HTTP requests against the bridge's access file."""

    def __init__(self, access: BridgeAccess) -> None:
        self._access = access

    async def verify_token(self, token: str) -> BearerToken | None:
        """Return a bearer token with its caller; None if it is invalid or the file is unreadable."""
        try:
            grant = self._access.find(token)
        except BrokenAccessFile as broken:
            log.error("no token can be verified: %s", broken)
            return None
        if grant is None:
            return None
        return BearerToken(
            token=token,
            client_id=grant.client or grant.id,
            scopes=[],
            expires_at=int(grant.expires),
            subject=grant.names[0],
            caller=grant.caller,
        )


def caller_of(context: Context[Any, Any]) -> Caller:
    """Return the caller to whom the bearer token of a tool call belongs.

    Each request is checked, since one MCP session may have requests of several callers. ``NotSent`` is raised if the
    request has no valid token.
    """
    request = context.request_context.request
    user = None if request is None else request.scope.get("user")
    token = user.access_token if isinstance(user, AuthenticatedUser) else None
    if not isinstance(token, BearerToken):
        raise NotSent("nobody has shown a token")
    return token.caller
