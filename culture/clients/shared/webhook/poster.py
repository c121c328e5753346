"""Posts bundles of alerts to one address, as its receiver wants them and as often as the configuration allows."""

import asyncio
from collections.abc import Mapping

from culture.clients.shared.webhook.alerts import Bundle
from culture.clients.shared.webhook.coalescing import Bucket
from culture.clients.shared.webhook.courier import Sleep
from culture.clients.shared.webhook.formats import Kind, body_for, kind_of, split_topic
from culture.clients.shared.webhook.posting import NotPosted, Post, post
from culture.clients.shared.webhook.retrying import delay
from culture.clients.shared.webhook.signing import signed
from culture.config.agents import WebhookConfig
from culture.lib.http import HttpAccess
from culture.lib.ssrf_guard import HttpTarget
from culture.runtime import REAL, Runtime

# How many posts at once, and then one every so many seconds: below what each receiver allows.
LIMITS: Mapping[Kind, tuple[int, float]] = {
    "discord": (5, 2.4),
    "slack": (1, 1.0),
    "ntfy": (10, 6.0),
    "json": (5, 1.0),
}


class Poster:
    """Knows one receiver."""

    def __init__(
        self,
        config: WebhookConfig,
        url: str,
        ways: HttpAccess,
        *,
        sleep: Sleep = asyncio.sleep,
        runtime: Runtime = REAL,
    ) -> None:
        """Raises TargetRefused where nothing can be posted."""
        target = HttpTarget.parse(url)
        self.kind: Kind = kind_of(target.host) if config.format == "auto" else config.format
        self.target, self._topic = split_topic(target) if self.kind == "ntfy" else (target, "")
        self.bucket = Bucket(*LIMITS[self.kind], runtime=runtime)
        self._config = config
        self._ways = ways
        self._sleep = sleep
        self._runtime = runtime

    async def post(self, bundle: Bundle) -> None:
        """Post it, several times if need be; NotPosted when it did not succeed."""
        body = body_for(self.kind, bundle, self._topic)
        for attempt in range(1, self._config.attempts + 1):
            try:
                request = Post(self.target, self._headers(body), body, self._ways, runtime=self._runtime)
                return await post(request, self._config.timeout, runtime=self._runtime)
            except NotPosted as failure:
                if failure.retry_after is not None:
                    self.bucket.rest(failure.retry_after)
                if not failure.passing or attempt == self._config.attempts:
                    raise
                await self._sleep(delay(attempt, failure.retry_after, self._runtime.chance.random()))

    def _headers(self, body: bytes) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "User-Agent": "culture"}
        if self.kind == "json" and self._config.secret is not None:
            headers |= signed(self._config.secret, body, int(self._runtime.now()))
        return headers
