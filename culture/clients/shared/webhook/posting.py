"""One POST, in a thread of its own: bounded in time, in redirects and in what is read; nowhere that is forbidden."""

import asyncio
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TypeVar

from culture.clients.shared.webhook.connecting import Ways, connect, seconds_left, secure
from culture.clients.shared.webhook.retrying import retry_after
from culture.clients.shared.webhook.targets import Target, TargetRefused

MOST_REDIRECTS = 3
_REDIRECTS = frozenset({301, 302, 307, 308})
_PASSING = frozenset({408, 425, 429, *range(500, 600)})

Result = TypeVar("Result")


class NotPosted(Exception):
    """The post did not succeed; the text names nothing secret."""

    def __init__(self, why: str, *, passing: bool = False, retry_after: float | None = None) -> None:
        super().__init__(why)
        self.passing = passing
        """Whether it may go better another time."""
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Reply:
    """The head of an answer; the body is of no interest and is not read."""

    status: int
    location: str
    retry_after: float | None


class Post:
    """A request under way, that another thread may break off."""

    def __init__(self, target: Target, headers: Mapping[str, str], body: bytes, ways: Ways) -> None:
        self._target = target
        self._headers = headers
        self._body = body
        self._ways = ways
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._broken_off = False

    def run(self, timeout: float) -> None:
        """Post, and follow where one is sent on to; NotPosted says why it failed."""
        target, deadline = self._target, time.monotonic() + timeout
        try:
            for _ in range(MOST_REDIRECTS + 1):
                reply = self._once(target, deadline)
                if reply.status not in _REDIRECTS:
                    return _judge(reply, target)
                target = target.redirected(reply.location)
            raise TargetRefused(f"{self._target} redirects more than {MOST_REDIRECTS} times")
        except TargetRefused as refusal:
            raise NotPosted(str(refusal)) from None
        except (OSError, http.client.HTTPException) as error:
            raise _told(error, target, timeout) from None

    def break_off(self) -> None:
        """Wait for nothing more."""
        with self._lock:
            self._broken_off = True
            if self._socket is not None:
                with suppress(OSError):
                    # Past the TLS layer, whose own way is not made for two threads.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _once(self, target: Target, deadline: float) -> Reply:
        with closing(self._held(connect(target, self._ways, deadline))) as raw:
            if target.scheme == "http":
                return self._exchange(raw, target, deadline)
            with closing(self._held(secure(raw, target, self._ways))) as encrypted:
                assert isinstance(encrypted, ssl.SSLSocket)
                encrypted.do_handshake()
                return self._exchange(encrypted, target, deadline)

    def _held(self, connection: socket.socket) -> socket.socket:
        with self._lock:
            self._socket = connection
            if not self._broken_off:
                return connection
        connection.close()
        raise TimeoutError

    def _exchange(self, connection: socket.socket, target: Target, deadline: float) -> Reply:
        connection.settimeout(seconds_left(deadline))
        client = http.client.HTTPConnection(target.host, target.port)
        client.default_port = {"http": 80, "https": 443}[target.scheme]
        client.sock = connection
        login = {"Authorization": target.authorization} if target.authorization else {}
        client.request("POST", target.path, self._body, {**self._headers, **login, "Connection": "close"})
        with closing(client.getresponse()) as response:
            wait = retry_after(response.getheader("Retry-After", ""), time.time())
            return Reply(response.status, response.getheader("Location", ""), wait)


async def post(request: Post, timeout: float) -> None:
    """Post from a thread, so that nobody waits who does not want to; NotPosted says why it failed."""
    try:
        async with asyncio.timeout(timeout):
            await _in_thread(lambda: request.run(timeout))
    except TimeoutError:
        raise NotPosted(f"no answer within {timeout:g} s", passing=True) from None
    finally:
        request.break_off()


async def _in_thread(work: Callable[[], Result]) -> Result:
    """Run in a thread that nobody waits for when this is cancelled, at the end of the program neither."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def settle(result: Result | None, error: BaseException | None) -> None:
        if not future.done():
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except Exception as raised:
            error = raised
        with suppress(RuntimeError):  # the loop is gone
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name="webhook", daemon=True).start()
    return await future


def _judge(reply: Reply, target: Target) -> None:
    if not 200 <= reply.status < 300:
        passing = reply.status in _PASSING
        raise NotPosted(f"{target} answered {reply.status}", passing=passing, retry_after=reply.retry_after)


def _told(error: Exception, target: Target, timeout: float) -> NotPosted:
    """What went wrong, without the words of the error: they may quote the address."""
    match error:
        case ssl.SSLCertVerificationError():
            return NotPosted(f"the certificate of {target} is not trusted: {error.verify_message}")
        case ssl.SSLError():
            return NotPosted(f"no TLS with {target}: {error.reason}", passing=True)
        case TimeoutError():
            return NotPosted(f"no answer within {timeout:g} s", passing=True)
        case socket.gaierror():
            return NotPosted(f"{target} is not known: {error.strerror}", passing=True)
        case OSError():
            return NotPosted(f"no connection to {target}: {error.strerror or type(error).__name__}", passing=True)
        case _:
            return NotPosted(f"{target} does not speak HTTP: {type(error).__name__}", passing=True)
