"""Asking the issuer over HTTP: one answer, of bounded size, in bounded time, from the host that was asked."""

import json
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import Timer
from typing import NoReturn
from urllib.parse import urlsplit

from culture.config.peer_uid import check_peer
from culture.server.auth.oidc.errors import IssuerUnreachable
from culture.server.shapes import Json

_MOST_BYTES = 256 << 10
_CHUNK = 1 << 14
_SETTING = "oidc.user: {user} in culture.yaml"


def fetch(url: str, end: float, user: str | None = None) -> Json:
    """The JSON object at an address, by ``end`` (``time.monotonic()``). Redirections are not followed.

    ``user``: who else of this machine may be the issuer, where no certificate tells: whoever is says who logs in.
    """
    try:
        with _connected(url, end, user) as connection:
            connection.request("GET", _path(url), headers={"Accept": "application/json"})
            with connection.getresponse() as response:
                return json_object(_body(response))
    except (OSError, HTTPException) as error:
        why = "it takes too long" if time.monotonic() >= end else str(error) or type(error).__name__
        raise IssuerUnreachable(f"{url}: {why}") from error
    except ValueError as error:
        raise IssuerUnreachable(f"{url}: the answer is no JSON object") from error


@contextmanager
def _connected(url: str, end: float, user: str | None) -> Iterator[HTTPConnection]:
    address, left = urlsplit(url), end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    host = address.hostname or ""
    if address.scheme == "https":
        connection: HTTPConnection = HTTPSConnection(
            host, address.port, timeout=left, context=ssl.create_default_context()
        )
    else:
        connection = HTTPConnection(host, address.port, timeout=left)
    try:
        connection.connect()
        if address.scheme == "http":
            check_peer(connection.sock, user, _SETTING)
        # The timeout is for each read: who sends a byte at a time would never end.
        watch = Timer(max(0.0, end - time.monotonic()), _shut, [connection.sock])
        watch.daemon = True
        watch.start()
        try:
            yield connection
        finally:
            watch.cancel()
    finally:
        connection.close()


def _path(url: str) -> str:
    address = urlsplit(url)
    return (address.path or "/") + (f"?{address.query}" if address.query else "")


def _body(response: HTTPResponse) -> bytes:
    if response.status != 200:
        raise HTTPException(f"it answers {response.status}")
    answer = bytearray()
    while chunk := response.read1(_CHUNK):
        answer += chunk
        if len(answer) > _MOST_BYTES:
            raise HTTPException("it answers with far too much")
    return bytes(answer)


def _shut(sock: socket.socket) -> None:
    try:
        # Not that of an SSLSocket, which another thread is reading from: that one would go on without TLS.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    except OSError:
        pass


def json_object(data: bytes) -> Json:
    """A JSON object without NaN or a key said twice; raises ValueError."""
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
