"""One POST of an alert, in a thread of its own, and what is told of its failure."""

import asyncio
import socket
import ssl
from collections.abc import Mapping
from http.client import HTTPException

from culture.clients.shared.webhook.retrying import retry_after
from culture.lib.http import HttpAccess, HttpAnswer, HttpRequest
from culture.lib.ssrf_guard import HttpTarget, TargetRefused
from culture.lib.threads import in_thread
from culture.runtime import REAL, Runtime

MOST_REDIRECTS = 3
_PASSING = frozenset({408, 425, 429, *range(500, 600)})


class NotPosted(Exception):
    """The post did not succeed; the text names nothing secret."""

    def __init__(self, why: str, *, passing: bool = False, retry_after: float | None = None) -> None:
        super().__init__(why)
        self.passing = passing
        """Whether it may go better another time."""
        self.retry_after = retry_after


class Post:
    """A request under way, that another thread may break off."""

    def __init__(
        self,
        target: HttpTarget,
        headers: Mapping[str, str],
        body: bytes,
        access: HttpAccess,
        *,
        runtime: Runtime = REAL,
    ) -> None:
        self._now = runtime.now
        self._request = HttpRequest("POST", target, headers, body, access, max_redirects=MOST_REDIRECTS)
        self.break_off = self._request.break_off

    def run(self, timeout: float) -> None:
        """Post, and follow where one is sent on to; NotPosted says why it failed."""
        try:
            _judge(self._request.run(timeout), self._request.target, self._now())
        except TargetRefused as refusal:
            raise NotPosted(str(refusal)) from None
        except (OSError, HTTPException) as error:
            raise _told(error, self._request.target, timeout) from None


async def post(request: Post, timeout: float, *, runtime: Runtime = REAL) -> None:
    """Post from a thread, so that nobody waits who does not want to; NotPosted says why it failed."""
    try:
        async with asyncio.timeout(timeout):
            await in_thread(lambda: request.run(timeout), "webhook", runtime=runtime)
    except TimeoutError:
        raise NotPosted(f"no answer within {timeout:g} s", passing=True) from None
    finally:
        request.break_off()


def _judge(answer: HttpAnswer, target: HttpTarget, now: float) -> None:
    if not 200 <= answer.status < 300:
        wait = retry_after(answer.headers.get("retry-after", ""), now)
        passing = answer.status in _PASSING
        raise NotPosted(f"{target} answered {answer.status}", passing=passing, retry_after=wait)


def _told(error: Exception, target: HttpTarget, timeout: float) -> NotPosted:
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
