"""The outgoing HTTP client: bounded time, bounded answer, only to a checked address.

A name is resolved once, every address is checked (``ssrf_guard``), and the connection goes to a number that was
checked: whoever controls the name cannot answer "a public address" for the check and "your router" for the connection.
TLS still verifies the name. Redirects are followed only if asked for, and each goes through the same check. The
deadline holds for all of it: a server that sends a byte now and then is cut off when time is up. Requests block, so
they run in a thread; another thread may break one off.
"""

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cache
from http.client import HTTPException, IncompleteRead

from culture.lib.ssrf_guard import HttpTarget, Network, TargetRefused, permitted

_REDIRECTS = frozenset({301, 302, 307, 308})
_CHUNK = 1 << 16

Resolve = Callable[[str, int], Sequence[str]]
"""The numeric addresses of a host, the one to try first at the front."""


class AnswerTooLong(HTTPException):
    """The body of an HTTP answer has more bytes than the caller wants to read."""


def resolve(host: str, port: int) -> list[str]:
    """Return the numeric addresses of a host, as the system's resolver knows them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


@cache
def system_trust() -> ssl.SSLContext:
    """Return a TLS context that checks host names, and certificates by the system's roots."""
    return ssl.create_default_context()


@dataclass(frozen=True, slots=True)
class HttpAccess:
    """Rules for HTTP requests: which addresses they may reach, and how TLS is verified."""

    listed: tuple[Network, ...] = ()
    """Private networks that may be called."""
    resolve: Resolve = resolve
    trust: Callable[[], ssl.SSLContext] = system_trust
    is_configured: bool = False
    """An operator wrote the address into the configuration: private and loopback addresses are meant."""
    check_plain: Callable[[socket.socket], object] | None = None
    """Called with a connection without TLS before anything is sent; what it raises ends the request."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP answer: its status, headers by lower-case name, and body up to the requested size."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)


class HttpRequest:
    """An HTTP request, which another thread may end early (``break_off``)."""

    def __init__(
        self,
        method: str,
        target: HttpTarget,
        headers: Mapping[str, str],
        body: bytes | None = None,
        access: HttpAccess | None = None,
        *,
        max_redirects: int = 0,
        max_body: int = 0,
    ) -> None:
        """Prepare a request; ``run`` sends it.

        ``max_body``: the most bytes of the answer's body to read, 0 reads none. ``max_redirects``: how many redirects
        to follow. ``access``: the rules for the request.
        """
        self._method = method
        self.target = target
        """Where it goes; after a redirect, where that leads."""
        self._headers = headers
        self._body = body
        self._access = access or HttpAccess()
        self._max_redirects = max_redirects
        self._max_body = max_body
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._is_broken_off = False

    def run(self, timeout: float) -> HttpAnswer:
        """Send the request and return the answer; block up to ``timeout`` s plus name resolution.

        Raises TargetRefused, TimeoutError, OSError (ssl.SSLError, socket.gaierror) and HTTPException.
        """
        deadline = time.monotonic() + timeout
        # A socket's own timeout is for each read: who sends a byte at a time would never end.
        watch = threading.Timer(timeout, self.break_off)
        watch.daemon = True
        watch.start()
        try:
            answer = self._follow(deadline)
            if self._is_broken_off:  # what was read until then may look whole
                raise TimeoutError
            return answer
        except (OSError, HTTPException):
            if time.monotonic() >= deadline:
                raise TimeoutError from None
            raise
        finally:
            watch.cancel()

    def break_off(self) -> None:
        """End the request from another thread; ``run`` then raises in the thread that waits for it."""
        with self._lock:
            self._is_broken_off = True
            if self._socket is not None:
                with suppress(OSError):
                    # Past the TLS layer, whose own way is not made for two threads.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _follow(self, deadline: float) -> HttpAnswer:
        first = self.target
        for _ in range(self._max_redirects + 1):
            answer = self._once(self.target, deadline)
            if answer.status not in _REDIRECTS or not self._max_redirects:
                return answer
            self.target = self.target.redirected(answer.headers.get("location", ""))
        raise TargetRefused(f"{first} redirects more than {self._max_redirects} times")

    def _once(self, target: HttpTarget, deadline: float) -> HttpAnswer:
        with closing(self._watched(_connect(target, self._access, deadline))) as plain:
            if target.scheme == "http":
                if self._access.check_plain is not None:
                    self._access.check_plain(plain)
                return self._exchange(plain, target, deadline)
            tls = self._access.trust().wrap_socket(plain, server_hostname=target.host, do_handshake_on_connect=False)
            with closing(self._watched(tls)):
                tls.do_handshake()
                return self._exchange(tls, target, deadline)

    def _watched(self, connection: socket.socket) -> socket.socket:
        with self._lock:
            self._socket = connection
            if not self._is_broken_off:
                return connection
        connection.close()
        raise TimeoutError

    def _exchange(self, connection: socket.socket, target: HttpTarget, deadline: float) -> HttpAnswer:
        connection.settimeout(_seconds_left(deadline))
        client = http.client.HTTPConnection(target.host, target.port)
        client.default_port = {"http": 80, "https": 443}[target.scheme]
        client.sock = connection
        login = {"Authorization": target.authorization} if target.authorization else {}
        client.request(self._method, target.path, self._body, {**login, **self._headers, "Connection": "close"})
        with closing(client.getresponse()) as response:
            headers = {name.lower(): value for name, value in response.getheaders()}
            return HttpAnswer(response.status, headers, self._read(response, deadline))

    def _read(self, response: http.client.HTTPResponse, deadline: float) -> bytes:
        body = bytearray()
        while self._max_body and (chunk := response.read1(_CHUNK)):
            body += chunk
            if len(body) > self._max_body:
                raise AnswerTooLong("it answers with far too much")
            _seconds_left(deadline)
        if self._max_body and response.length:
            raise IncompleteRead(bytes(body), response.length)
        return bytes(body)


def _connect(target: HttpTarget, access: HttpAccess, deadline: float) -> socket.socket:
    """Return a connection to the first of the target's permitted addresses that accepts one.

    ``deadline`` is by ``time.monotonic()``.
    """
    addresses = access.resolve(target.host, target.port)
    allowed = [each for each in addresses if access.is_configured or permitted(each, access.listed)]
    if not allowed:
        raise TargetRefused(f"{target} is at an address of a private network that is not listed in allow_private")
    failure: OSError | None = None
    for address in allowed:
        try:
            # A numeric address is never resolved again: what was checked is what is called.
            return socket.create_connection((address, target.port), timeout=_seconds_left(deadline))
        except OSError as error:
            failure = error
    assert failure is not None
    raise failure


def _seconds_left(deadline: float) -> float:
    """Return the seconds until the deadline (``time.monotonic()``).

    TimeoutError if it has passed.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
