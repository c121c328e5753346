"""Alerts people when a daemon cannot write its file, mostly since the disk is full, and when it can again.

Nothing is lost meanwhile: a message that could not be stored stays with the server and is delivered again, a prompt
or an answer is tried again. But an agent that stays silent looks as if it thought. The outbox is in the file that
cannot be written, so the alert is sent past it.

On a disk with a few bytes left small writes succeed between those that fail. So one that succeeds does not end the
trouble: it has ended when there is room for ``PROBE_BYTES`` more.
"""

import asyncio
import logging
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from culture.clients.shared.records import Records
from culture.clients.shared.webhook import WebhookClient, texts
from culture.transport import IRCTransport, NotSent

log = logging.getLogger(__name__)

PROBE_BYTES = 256 * 1024
LOOK_AGAIN = 2.0
MOST_TRIES = 10
"""Tries to say one text: a message that cannot be stored costs the daemon its connection, again and again."""


class DiskTrouble:
    """Watches the file of one daemon."""

    def __init__(
        self,
        nick: str,
        records: Records,
        transport: IRCTransport,
        webhook: WebhookClient,
        look_again: float = LOOK_AGAIN,
    ) -> None:
        self.why: str | None = None
        """Why the file cannot be written; None while it can."""
        self._nick = nick
        self._folder = records.path.parent
        self._transport = transport
        self._webhook = webhook
        self._look_again = look_again
        self._watch: asyncio.Task[None] | None = None
        records.on_full = self._full

    async def stop(self) -> None:
        """Watch no more."""
        if self._watch is not None:
            self._watch.cancel()
            with suppress(asyncio.CancelledError):
                await self._watch

    def _full(self, why: str) -> None:
        if self.why is None:
            self.why = why
            self._watch = asyncio.create_task(self._until_there_is_room(why), name="a full disk")

    async def _until_there_is_room(self, why: str) -> None:
        failed = texts.disk_failed(self._nick, why, str(self._folder))
        log.error("%s", failed)
        self._webhook.fire("agent_error", failed, in_channel=False)
        tries = 0
        is_told = False
        while not _has_room(self._folder):
            if not is_told and tries < MOST_TRIES:
                is_told, tries = await self._say(failed), tries + 1
            await asyncio.sleep(self._look_again)
        self.why = None
        log.warning("%s: there is room in %s again", self._nick, self._folder)
        for _ in range(MOST_TRIES if tries else 0):  # a try that failed may have been heard
            if await self._say(texts.disk_recovered(self._nick)):
                break
            await asyncio.sleep(self._look_again)

    async def _say(self, text: str) -> bool:
        try:
            await self._transport.send_notice(self._webhook.channel, texts.said(text, self._nick))
        except NotSent as refusal:
            log.warning("%s: the state of the disk cannot be said: %s", self._nick, refusal)
            return False
        return True


def _has_room(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, PROBE_BYTES)
    except OSError:
        return False
    return True
