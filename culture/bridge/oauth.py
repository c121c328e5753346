"""OAuth 2.1 with PKCE: a remote program registers, its owner types a code, it gets a token."""

import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from html import escape
from typing import TypeVar
from urllib.parse import urlsplit

from mcp.server.auth.provider import (
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    RegistrationError,
    TokenError,
    construct_redirect_uri,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from culture.bridge.access import ACCESS_LIFETIME, CONSENT_LIFETIME, BridgeAccess, Client, Grant
from culture.bridge.bearer_tokens import BearerToken, BearerTokenVerifier
from culture.bridge.callers import CallRate
from culture.config.listen_policy import is_loopback
from culture.protocol.text import Profile, one_line
from culture.transport import NotSent

log = logging.getLogger(__name__)

Entry = TypeVar("Entry")

_PENDING, _PENDING_LIFETIME = 1000, 600.0
_PENDING_EACH = 20
_TRIES = 5
_REGISTRATIONS, _REGISTRATIONS_PER_SECOND = 30, 0.1
_LONGEST_REGISTRATION, _LONGEST_QUESTION = 8192, 8192
"""Limits in bytes: anybody may send these, and they are stored."""
_NEVER = frozenset({"javascript", "data", "file", "blob", "about", "vbscript", "ftp", "ws", "wss"})


@dataclass(slots=True)
class ConsentRequest:
    """A program's OAuth authorization request; it waits for its owner's consent until ``until``."""

    client: OAuthClientInformationFull
    params: AuthorizationParams
    until: float
    tries: int = _TRIES
    """Remaining attempts to type the code."""


class AuthorizationGrant(AuthorizationCode):
    """The OAuth authorization code that a program gets after consent, with its grant."""

    grant: Grant


class RefreshGrant(RefreshToken):
    """An OAuth refresh token, with the grant whose token it renews."""

    grant: Grant


class Consents(OAuthAuthorizationServerProvider[AuthorizationGrant, RefreshGrant, BearerToken]):
    """The OAuth authorization server of a bridge, called by the MCP SDK and the consent page."""

    def __init__(self, access: BridgeAccess, url: str, clock: Callable[[], float] = time.time) -> None:
        self._access = access
        self._url = url
        self._clock = clock
        self._verifier = BearerTokenVerifier(access)
        self._pending: OrderedDict[str, ConsentRequest] = OrderedDict()
        self._codes: OrderedDict[str, AuthorizationGrant] = OrderedDict()
        self._registrations = CallRate(_REGISTRATIONS, _REGISTRATIONS_PER_SECOND, clock)

    # The consent page

    def pending(self, request: str) -> ConsentRequest | None:
        """Return the consent request with this id; None if it is unknown, answered or expired."""
        waiting = self._pending.get(request)
        return waiting if waiting is not None and waiting.until > self._clock() else None

    def consent(self, request: str, code: str) -> str | None:
        """Accept a consent request by the owner's one-time code; return the URL for the redirect.

        ``request``: id of the consent request. Returns None if the code is invalid or the request is no longer pending.
        """
        pending_request = self.pending(request)
        if pending_request is None:
            return None
        grant = self._access.redeem(code)
        pending_request.tries -= grant is None
        if grant is not None or not pending_request.tries:
            del self._pending[request]
        if grant is None:
            return None
        authorization = AuthorizationGrant(
            code=secrets.token_urlsafe(32),
            scopes=[],
            expires_at=self._clock() + CONSENT_LIFETIME,
            client_id=pending_request.client.client_id or "",
            code_challenge=pending_request.params.code_challenge,
            redirect_uri=pending_request.params.redirect_uri,
            redirect_uri_provided_explicitly=pending_request.params.redirect_uri_provided_explicitly,
            resource=pending_request.params.resource,
            subject=grant.names[0],
            grant=grant,
        )
        _add_bounded(self._codes, authorization.code, authorization)
        return construct_redirect_uri(
            str(authorization.redirect_uri), code=authorization.code, state=pending_request.params.state, iss=self._url
        )

    def deny(self, request: str) -> str | None:
        """Deny a consent request, given by its id; return the URL for the redirect.

        Returns None if there is no such request.
        """
        pending_request = self._pending.pop(request, None)
        if pending_request is None:
            return None
        uri = str(pending_request.params.redirect_uri)
        return construct_redirect_uri(uri, error="access_denied", state=pending_request.params.state, iss=self._url)

    # Methods that the MCP SDK calls

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        """Return the registered program with this OAuth client id, or None."""
        stored = self._access.client(client_id)
        return None if stored is None else OAuthClientInformationFull.model_validate_json(stored.information)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Store a program's OAuth registration, which alone gives no access.

        ``RegistrationError`` is raised if the registration is invalid, or if there are too many.
        """
        try:
            self._registrations.take("")
        except NotSent:
            raise RegistrationError("invalid_client_metadata", "too many registrations: try again later") from None
        for uri in client_info.redirect_uris or []:
            parts = urlsplit(str(uri))
            if parts.scheme in _NEVER or (parts.scheme == "http" and not is_loopback(parts.hostname or "")):
                raise RegistrationError("invalid_redirect_uri", "https, a loopback address, or a program's own scheme")
            if "@" in parts.netloc:  # https://claude.ai@evil.example leads to evil.example
                raise RegistrationError("invalid_redirect_uri", "without a user's name before the host")
        information = client_info.model_dump_json()
        if len(information) > _LONGEST_REGISTRATION:
            raise RegistrationError("invalid_client_metadata", f"at most {_LONGEST_REGISTRATION} bytes")
        self._access.register(Client(id=client_info.client_id or "", information=information))

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """Store a program's request for consent; return the URL of the consent page for it.

        ``AuthorizeError`` is raised if the request is too long or meant for another server.
        """
        if params.resource is not None and _origin(params.resource) != _origin(self._url):
            raise AuthorizeError("invalid_target", "that is not this bridge")
        if len(params.model_dump_json()) > _LONGEST_QUESTION:
            raise AuthorizeError("invalid_request", f"at most {_LONGEST_QUESTION} bytes")
        same_client = [id for id, each in self._pending.items() if each.client.client_id == client.client_id]
        for id in same_client[: 1 - _PENDING_EACH]:
            del self._pending[id]
        request = secrets.token_urlsafe(24)
        _add_bounded(self._pending, request, ConsentRequest(client, params, self._clock() + _PENDING_LIFETIME))
        return f"{self._url}/consent?request={request}"

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationGrant | None:
        """Return an authorization code with its grant, or None if it is unknown or used.

        The MCP SDK, which calls this, checks the program and the age of the code.
        """
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationGrant
    ) -> OAuthToken:
        """Return access and refresh tokens for an authorization code, which works once.

        ``TokenError`` is raised if the code was used or its grant was revoked.
        """
        if self._codes.pop(authorization_code.code, None) is None:
            raise TokenError("invalid_grant", "the code was used")
        token_pair = self._access.open(authorization_code.grant, client.client_id or "")
        if token_pair is None:
            raise TokenError("invalid_grant", "it was taken back")
        return _token(token_pair)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshGrant | None:
        """Return a refresh token with its grant, or None if it is invalid for ``client``.

        If the refresh token was used before, somebody stole it, and its grant is deleted.
        """
        grant = self._access.refreshable(refresh_token, client.client_id or "")
        if grant is None:
            stolen = self._access.end_stolen(refresh_token, client.client_id or "")
            if stolen is not None:
                log.warning("token %s of %s is revoked: it was renewed twice", stolen.id, stolen.names[0])
            return None
        return RefreshGrant(
            token=refresh_token,
            client_id=client.client_id or "",
            scopes=[],
            expires_at=int(grant.ends),
            subject=grant.names[0],
            grant=grant,
        )

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshGrant, scopes: list[str]
    ) -> OAuthToken:
        """Return new access and refresh tokens for a refresh token, which becomes invalid.

        ``scopes`` is ignored: the bridge has none. ``TokenError`` is raised if the token was used or revoked meanwhile.
        """
        renewed = self._access.renew(refresh_token.grant)
        if renewed is None:
            raise TokenError("invalid_grant", "it was used or taken back")
        return _token(renewed)

    async def load_access_token(self, token: str) -> BearerToken | None:
        """Return an access token with its caller; None if it is invalid."""
        return await self._verifier.verify_token(token)

    async def revoke_token(self, token: BearerToken | RefreshGrant) -> None:
        """Revoke an access or refresh token at the program's request, and the grant behind it."""
        self._access.revoke(token.grant.id if isinstance(token, RefreshGrant) else token.caller.key)


def _add_bounded(entries: OrderedDict[str, Entry], key: str, value: Entry) -> None:
    """Add an entry to a dict of at most 1000; the oldest entries beyond that are dropped."""
    entries[key] = value
    while len(entries) > _PENDING:
        entries.popitem(last=False)


def _token(token_pair: tuple[str, str]) -> OAuthToken:
    access, refresh = token_pair
    return OAuthToken(access_token=access, refresh_token=refresh, expires_in=int(ACCESS_LIFETIME))


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme.lower(), parts.netloc.lower()


PATH = "/consent"
REGISTRATION = "/register"
_NO_CONSENT = "this bridge wants a token in the header Authorization: `culture bridge token add NICK` makes one"
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>culture bridge</title>
<style>
body{{font:1rem/1.5 sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem}}
input,button{{font:inherit;padding:.4rem}}
</style>
<h1>Let a program speak on IRC?</h1>
{body}
</html>"""
_FORM = """<p>A program that calls itself <b>{name}</b> asks to read and write here. When you agree, it is sent to
<b>{place}</b>. Agree only if you have just asked for this yourself.</p>
<p>On the machine of the bridge, type <code>culture bridge token code NICK</code>. The program will speak as that
nick, and you can take it back with <code>culture bridge token revoke NICK</code>.</p>
<p role="alert">{problem}</p>
<form method="post"><input type="hidden" name="request" value="{request}">
<label>Code <input name="code" autocomplete="off" autofocus placeholder="XXXX-XXXX-XXXX"></label>
<button name="answer" value="yes">Agree</button> <button name="answer" value="no">Refuse</button></form>"""

Endpoint = Callable[[Request], Awaitable[Response]]


def consent_page(consents: Consents) -> Endpoint:
    """Return the HTTP endpoint that shows the consent page and receives the owner's answer."""

    async def page(request: Request) -> Response:
        fields = request.query_params if request.method == "GET" else await request.form()
        id = str(fields.get("request", ""))
        pending_request = consents.pending(id)
        if pending_request is None:
            return _page("<p>Nothing waits for consent here. Begin anew in the program.</p>", 400)
        if request.method == "GET":
            return _form(id, pending_request)
        return _handle_answer(consents, id, pending_request, str(fields.get("answer", "")), str(fields.get("code", "")))

    return page


async def no_consent(request: Request) -> Response:
    """Answer 404 to an OAuth registration, with a text that says how to create a token instead."""
    return PlainTextResponse(_NO_CONSENT, 404)


def _handle_answer(consents: Consents, id: str, pending_request: ConsentRequest, answer: str, code: str) -> Response:
    if answer == "no":
        return _redirect(consents.deny(id))
    target = consents.consent(id, code)
    if target is None:
        return _form(id, pending_request, "That is not a code, or it was used, or it is too old.", 403)
    return _redirect(target)


def _redirect(target: str | None) -> Response:
    return RedirectResponse(target or "/", 303, headers=_HEADERS)


def _form(id: str, pending_request: ConsentRequest, problem: str = "", status: int = 200) -> Response:
    parts = urlsplit(str(pending_request.params.redirect_uri))
    name = one_line(pending_request.client.client_name or "nameless", Profile.WEB)[:80]
    place = f"{parts.scheme}://{parts.netloc}"
    form = _FORM.format(name=escape(name), place=escape(place), problem=escape(problem), request=escape(id))
    return _page(form, status)


def _page(body: str, status: int) -> Response:
    return HTMLResponse(_PAGE.format(body=body), status, headers=_HEADERS)
