"""The web page for tests: a real one over TCP, and browsers that do what people do."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

import httpx

from culture.cli.web import account as webaccount
from culture.config.services import WebConfig
from culture.transport import Address
from culture.web.app import serving
from culture.web.login_links import make_link
from culture.web.site import WebSettings, data_folder
from tests.support.people import PASSWORD
from tests.support.servers import config_for
from tests.support.waiting import PATIENCE


def settings_for(folder: Path, port: int, **web: Any) -> WebSettings:
    """Of a page for the server of this folder, which listens on that port."""
    config = config_for(folder, web=WebConfig(port=0, **web))
    token = webaccount.ensure_token(config)
    login_version = webaccount.login_version(config)
    return WebSettings(
        config, Address("127.0.0.1", port), webaccount.NAME, token, data_folder(config), 0, login_version
    )


@dataclass
class Browser:
    """Somebody's browser: it keeps cookies, and says where its forms come from."""

    client: httpx.AsyncClient
    settings: WebSettings
    csrf: str = ""
    events: list[tuple[str, Any]] = field(default_factory=list)

    async def get(self, path: str, **headers: str) -> httpx.Response:
        """A page; the token of its forms is remembered."""
        answer = await self.client.get(path, headers={"Accept": "text/html", **headers})
        found = re.search(r'<meta name="csrf" content="([0-9a-f]+)"', answer.text)
        self.csrf = found[1] if found else self.csrf
        return answer

    async def post(self, path: str, headers: dict[str, str] | None = None, **fields: str) -> httpx.Response:
        """A form of the page."""
        said = {"Origin": str(self.client.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin", **(headers or {})}
        return await self.client.post(path, data={"csrf": self.csrf, **fields}, headers=said)

    async def log_in(self, account: str, password: str = PASSWORD) -> httpx.Response:
        """With a password."""
        await self.get("/login")
        answer = await self.post("/login", account=account, password=password)
        if answer.status_code == 303:
            await self.get("/rooms")
        return answer

    async def come_in(self, account: str) -> "Browser":
        """With a link, which is quicker."""
        token = make_link(self.settings.folder, account)
        await self.get(f"/login/{token}")
        assert (await self.post(f"/login/{token}")).status_code == 303
        assert (await self.get("/rooms")).status_code == 200
        return self

    @asynccontextmanager
    async def listening(self, last: str = "") -> AsyncIterator[list[tuple[str, Any]]]:
        """What /events tells while this lasts."""
        events: list[tuple[str, Any]] = []
        ids: list[str] = []
        ready = asyncio.Event()

        async def read() -> None:
            headers = {"Last-Event-ID": last} if last else {}
            async with self.client.stream("GET", "/events", headers=headers, timeout=None) as answer:
                ready.set()
                kind = ""
                async for line in answer.aiter_lines():
                    name, _, value = line.partition(": ")
                    if name == "event":
                        kind = value
                    elif name == "id":
                        ids.append(value)
                        self.last = value
                    elif name == "data":
                        events.append((kind, json.loads(value)))

        task = asyncio.create_task(read())
        try:
            async with asyncio.timeout(PATIENCE):
                await ready.wait()
            yield events
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    last: str = ""


@dataclass
class Site:
    """A page that runs."""

    settings: WebSettings
    url: str
    browsers: list[httpx.AsyncClient] = field(default_factory=list)

    def browser(self, **options: Any) -> Browser:
        """A new one, in which nobody is logged in."""
        client = httpx.AsyncClient(base_url=self.url, timeout=PATIENCE, **options)
        self.browsers.append(client)
        return Browser(client, self.settings)


@asynccontextmanager
async def site_for(settings: WebSettings) -> AsyncIterator[Site]:
    """A page with these settings, while this lasts."""
    async with serving(settings) as running:
        site = Site(running, f"http://127.0.0.1:{running.port}")
        try:
            yield site
        finally:
            for client in site.browsers:
                await client.aclose()


def texts(page: str) -> list[str]:
    """What was said, as a page shows it."""
    return [unescape(re.sub("<[^>]+>", "", each)) for each in re.findall(r'<div class="text">(.*?)</div>', page, re.S)]
