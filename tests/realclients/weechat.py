"""weechat without a screen: told what to do through its fifo plugin, watched through the log of each buffer."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.realclients.transcript import Transcript, following

# Only what lets a test watch and not wait: log lines at once, no pause between commands.
_CONFIG = {
    "logger.conf": "[file]\nflush_delay = 0\n[look]\nbacklog = 0\n",
    "fifo.conf": '[file]\npath = "${weechat_runtime_dir}/fifo"\n',
    "irc.conf": "[server_default]\nanti_flood_prio_high = 0\n",
}
# Every line that weechat itself highlights is told in the core buffer.
_FLAG = '/trigger add flagged print "" "${tg_highlight} == 1" "" "/print -core flagged: ${tg_message_nocolor}"'
_PLUGINS = "alias,charset,fifo,irc,logger,trigger"
CORE = "core.weechat"


class Weechat:
    """A person at weechat, on the server that weechat knows by this name: without one of its own, its address."""

    def __init__(self, home: Path, server: str, stack: AsyncExitStack) -> None:
        self._home = home
        self._server = server
        self._stack = stack
        self._transcripts: dict[str, Transcript] = {}

    def type(self, text: str, where: str = "") -> None:
        """Enter a line in the buffer of this channel or nick, by default in the server's."""
        pipe = os.open(self._home / "fifo", os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.write(pipe, f"{self._buffer(where)} *{text}\n".encode())
        finally:
            os.close(pipe)

    async def shows(self, pattern: str, where: str = "") -> re.Match[str]:
        """The next line of this buffer in which the pattern is found."""
        return await (await self._transcript(where)).shows(pattern)

    async def count(self, pattern: str, where: str = "") -> int:
        """In how many lines of this buffer the pattern is found."""
        return (await self._transcript(where)).count(pattern)

    async def _transcript(self, where: str) -> Transcript:
        buffer = self._buffer(where)
        if buffer not in self._transcripts:
            file = self._home / "logs" / f"{buffer}.weechatlog"
            self._transcripts[buffer] = await self._stack.enter_async_context(following(file))
        return self._transcripts[buffer]

    def _buffer(self, where: str) -> str:
        if where == CORE:
            return CORE
        return f"irc.{self._server}.{where}" if where else f"irc.server.{self._server}"


@asynccontextmanager
async def weechat(home: Path, *arguments: str, server: str = "127.0.0.1") -> AsyncIterator[Weechat]:
    """weechat as ``weechat irc://nick@host:port/#channel`` starts it, with nothing in its home."""
    _furnish(home)
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    process = await asyncio.create_subprocess_exec(
        *("weechat-headless", "--dir", str(home), "--plugins", _PLUGINS, *arguments),
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with AsyncExitStack() as stack:
            person = Weechat(home, server, stack)
            plugins = await person.shows("Plugins loaded: (.*)", CORE)
            if "fifo" not in plugins[1]:
                pytest.skip("not installed: weechat's fifo plugin (weechat-plugins)")
            person.type(_FLAG, CORE)
            await person.shows('Trigger "flagged" created', CORE)
            yield person
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _furnish(home: Path) -> None:
    (home / "logs").mkdir(parents=True)
    for name, text in _CONFIG.items():
        (home / name).write_text(text)
