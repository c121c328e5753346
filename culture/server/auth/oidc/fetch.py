"""Asks the issuer over HTTP, and reads its answers strictly."""

import json
import ssl
from http.client import HTTPException
from typing import NoReturn

from culture.config.peer_uid import check_peer
from culture.lib.http import HttpAccess, HttpRequest
from culture.lib.ssrf_guard import HttpTarget, TargetRefused
from culture.runtime import REAL, Runtime
from culture.server.auth.oidc.errors import IssuerUnreachable
from culture.server.shapes import Json

_MOST_BYTES = 256 << 10
_SETTING = "oidc.user: {user} in culture.yaml"


def fetch(url: str, end: float, user: str | None = None, *, runtime: Runtime = REAL) -> Json:
    """Return the JSON object at a URL of the issuer; raises IssuerUnreachable if there is none.

    ``end``: deadline by ``runtime.monotonic()``. ``user``: the local user, besides root and ours, who may run an issuer
    that is reached without TLS on this machine. Redirections are not followed.
    """
    access = HttpAccess(
        trust=ssl.create_default_context,
        is_configured=True,
        check_plain=lambda connection: check_peer(connection, user, _SETTING, runtime=runtime),
    )
    try:
        request = HttpRequest(
            "GET", HttpTarget.parse(url), {"Accept": "application/json"}, access=access, max_body=_MOST_BYTES
        )
        answer = request.run(end - runtime.monotonic())
        if answer.status != 200:
            raise HTTPException(f"it answers {answer.status}")
        return json_object(answer.body)
    except (OSError, HTTPException, TargetRefused) as error:
        why = "it takes too long" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        raise IssuerUnreachable(f"{url}: {why}") from error
    except ValueError as error:
        raise IssuerUnreachable(f"{url}: the answer is no JSON object") from error


def json_object(data: bytes) -> Json:
    """Parse a JSON object; raises ValueError for anything else, for NaN and for a repeated key."""
    try:
        found = json.loads(data.decode(), object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(found, dict):
        raise ValueError("not an object")
    return found


def _once(pairs: list[tuple[str, object]]) -> Json:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")
