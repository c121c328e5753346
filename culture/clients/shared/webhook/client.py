"""WebhookClient: every alert goes to the channel for alerts and then to the web, and nobody waits for it."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Protocol, TypedDict
from urllib.parse import quote

from culture.clients.shared.bus import MessageBus
from culture.clients.shared.records import Records
from culture.clients.shared.webhook import texts
from culture.clients.shared.webhook.alerts import Alert, Bundle, and_more
from culture.clients.shared.webhook.coalescing import Bucket
from culture.clients.shared.webhook.courier import Courier, Deliver, Sleep
from culture.clients.shared.webhook.journal import Journal
from culture.clients.shared.webhook.poster import Poster
from culture.clients.shared.webhook.posting import NotPosted
from culture.config.agents import AlertEvent, WebhookConfig
from culture.lib.http import HttpAccess
from culture.lib.ssrf_guard import TargetRefused
from culture.protocol.names import is_channel
from culture.protocol.text import Profile, one_line
from culture.runtime import REAL, Runtime

log = logging.getLogger(__name__)

LINES = (10, 2.0)
"""So many lines at once in the channel, and then one every so many seconds."""
GRACE = 2.0
"""So long a stop waits for a post that is under way."""


class Saying(Protocol):
    """How a line gets to a channel, now or as soon as it can."""

    def __call__(self, place: str, text: str, *, notice: bool = False) -> None:
        """Say it."""


class WebhookStatus(TypedDict):
    """How the posts went since the daemon started, and what earlier runs left open."""

    failures: int
    last_failure: str | None
    at: str | None
    unknown: int


Fire = Callable[[AlertEvent, str], None]


class WebhookClient:
    """Fires the events that the configuration names."""

    def __init__(
        self,
        config: WebhookConfig,
        say: Saying,
        *,
        nick: str,
        bus: MessageBus,
        records: Records,
        server: str = "irc://localhost:6667",
        page: str | None = None,
        ways: HttpAccess | None = None,
        sleep: Sleep = asyncio.sleep,
        runtime: Runtime = REAL,
    ) -> None:
        self._config = config
        self._say = say
        self._nick = nick
        self._server = server
        self._page = page.rstrip("/") if page else None
        self._runtime = runtime
        self._journal = Journal(records, runtime=runtime)
        self.noted: Callable[[str, str, str | None], None] = lambda event, text, place: None
        """Called with each alert: its event, text and place."""
        self._failures = 0
        self._last_failure: tuple[str, datetime] | None = None
        self._ways = ways or HttpAccess(config.allow_private)
        self._sleep = sleep
        self._lines = Courier(
            self.channel, self._tell, Bucket(*LINES, runtime=runtime), self._journal, bus, sleep, runtime=runtime
        )
        addresses = dict.fromkeys(self._address(event) for event in config.events)
        self._couriers = {url: self._courier(url, bus) for url in addresses if url is not None}

    @property
    def channel(self) -> str:
        """The channel for alerts; joined before the first one."""
        return self._config.irc_channel

    async def start(self) -> None:
        """Make ready, and say what became of the alerts of the last run."""
        for lost in self._journal.recover():
            said = (
                "it is unknown whether %s was told of %d alert(s): the daemon ended before it was sure. The first: %s"
            )
            log.warning("%s: " + said, self._nick, lost.place, lost.count, lost.text)

    async def stop(self) -> None:
        """Give what is under way a moment; what is still open then is told at the next start."""
        self._tell_waiting()
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await asyncio.gather(*(courier.drained() for courier in [self._lines, *self._couriers.values()]))

    def fire(
        self,
        event: AlertEvent,
        text: str,
        *,
        place: str | None = None,
        question: str = "",
        options: Sequence[str] = (),
        in_channel: bool = True,
    ) -> None:
        """Something happened that people want to know; ``place`` is where to read more. Never waits, never fails.

        Of a ``question`` the posts tell its id and its ``options``. The caller may say the line in the channel itself.
        """
        if event not in self._config.events:
            return
        self.noted(event, one_line(text, Profile.WEB), place)
        line = one_line(text, Profile.WEB)
        shown = tuple(one_line(each, Profile.WEB) for each in options)
        channel = place if place is not None and is_channel(place) else ""
        link = self._link(place or self.channel, question)
        alert = Alert(event, self._nick, line, link, channel, question, shown)
        url = self._address(event)
        courier = self._couriers[url] if url is not None else None
        # On disk first: killed at any point from here, it is told or known to be unknown.
        if courier is not None:
            courier.put(
                replace(
                    alert, text=f"{line} ({question}{': ' if shown else ''}{'/'.join(shown)})" if question else line
                )
            )
        if in_channel and self._lines.may_go:
            self._line(alert.text)
        elif in_channel:
            self._lines.put(alert)
            self._lines.nudge()
        if courier is not None:
            courier.nudge()

    def status(self) -> WebhookStatus:
        """What went wrong, for those who look."""
        why, at = self._last_failure or (None, None)
        return {
            "failures": self._failures,
            "last_failure": why,
            "at": at.isoformat() if at else None,
            "unknown": self._journal.unknown(),
        }

    def _address(self, event: AlertEvent) -> str | None:
        own: dict[AlertEvent, str | None] = {
            "agent_question": self._config.on_question,
            "agent_spiraling": self._config.on_spiraling,
            "agent_timeout": self._config.on_timeout,
            "agent_error": self._config.on_error,
            "agent_complete": self._config.on_complete,
        }
        return own[event] or self._config.url

    def _link(self, place: str, question: str = "") -> str:
        """Where to read more, or to answer a question; a private talk has no address."""
        channel, nick = quote(place if is_channel(place) else self.channel, safe=""), quote(self._nick, safe="")
        if self._config.link is not None:
            return self._config.link.replace("{channel}", channel)
        if self._page is not None:
            return f"{self._page}/questions/{nick}/{question}" if question else f"{self._page}/rooms/{channel}"
        return f"{self._server}/{channel}"

    def _courier(self, url: str, bus: MessageBus) -> Courier:
        try:
            poster = Poster(self._config, url, self._ways, sleep=self._sleep, runtime=self._runtime)
        except TargetRefused as refusal:
            place, deliver = "a wrong address", self._refuser(str(refusal))
            bucket = Bucket(1, 1.0, runtime=self._runtime)
        else:
            place, deliver, bucket = str(poster.target), self._posting(poster), poster.bucket
        return Courier(place, deliver, bucket, self._journal, bus, self._sleep, runtime=self._runtime)

    def _posting(self, poster: Poster) -> Deliver:
        async def deliver(bundle: Bundle) -> None:
            self._tell_waiting()
            try:
                await poster.post(bundle)
                log.info("%s: told %s of %s", self._nick, poster.target, bundle.gravest.event)
            except NotPosted as failure:
                self._failed(bundle, str(failure))
            except Exception as error:  # its words and its traceback may quote the address
                self._failed(bundle, f"an error of our own, {type(error).__name__}")

        return deliver

    def _refuser(self, why: str) -> Deliver:
        async def deliver(bundle: Bundle) -> None:
            self._failed(bundle, why)

        return deliver

    def _failed(self, bundle: Bundle, why: str) -> None:
        self._failures += 1
        self._last_failure = (why, self._runtime.utc())
        log.warning("%s: the alert %s was not posted: %s", self._nick, bundle.gravest.event, why)

    async def _tell(self, bundle: Bundle) -> None:
        self._tell_now(bundle)

    def _tell_waiting(self) -> None:
        """The channel knows before the web does."""
        if (waiting := self._lines.hurry()) is not None:
            bundle, row = waiting
            self._tell_now(bundle)
            self._journal.settled(row)

    def _tell_now(self, bundle: Bundle) -> None:
        """In one line, also of many."""
        others = and_more(len(bundle.alerts) - 1 + bundle.more)
        self._line(bundle.gravest.text, f" {others}" if others else "")

    def _line(self, text: str, more: str = "") -> None:
        try:
            self._say(self.channel, texts.said(text, self._nick) + more)
        except sqlite3.Error as error:
            log.error("%s: an alert cannot be said: %s", self._nick, error)
