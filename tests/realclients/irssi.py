"""irssi in a terminal of tmux: typed into by keys, watched through its own log and on the screen."""

import asyncio
import os
import re
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.realclients.transcript import Transcript, following
from tests.support.waiting import PATIENCE

# Only what keeps a test from waiting: no pause between commands, nor before changes of mode are shown.
_CONFIG = """
settings = {
  "irc/core" = { cmd_queue_speed = "10msec"; cmds_max_at_once = "1000"; };
  "fe-common/irc" = { group_multi_mode = "no"; };
};
"""


class Irssi:
    """A person at irssi."""

    def __init__(self, tmux: Sequence[str], log: Transcript) -> None:
        self._tmux = tmux
        self._log = log

    async def type(self, text: str) -> None:
        """Enter a line in the window that is in front."""
        await run(*self._tmux, "send-keys", "-l", "--", text)
        await run(*self._tmux, "send-keys", "Enter")

    async def shows(self, pattern: str) -> re.Match[str]:
        """The next line, in whatever window, in which the pattern is found."""
        return await self._log.shows(pattern)

    def count(self, pattern: str) -> int:
        """In how many lines the pattern is found."""
        return self._log.count(pattern)

    async def has_on_screen(self, text: str) -> None:
        """Wait until the text is to be read in the terminal."""
        screen = ""
        try:
            async with asyncio.timeout(PATIENCE):
                while text not in screen:
                    screen = await run(*self._tmux, "capture-pane", "-p", "-J")
        except TimeoutError:
            raise AssertionError(f"{text!r} is not on the screen:\n{screen}") from None


@asynccontextmanager
async def irssi(home: Path, *arguments: str) -> AsyncIterator[Irssi]:
    """irssi as ``irssi -c host -p port -n nick`` starts it, with nothing in its home."""
    _furnish(home)
    program = shlex.join(("env", f"HOME={home}", "LC_ALL=C.UTF-8", "irssi", f"--home={home}", *arguments))
    # Not in the test's folder: the path of a socket may have 107 bytes.
    with TemporaryDirectory() as folder:
        tmux = ("tmux", "-u", "-f", os.devnull, "-S", f"{folder}/tmux")
        async with following(home / "all.log") as log:
            await run(*tmux, "new-session", "-d", "-x", "160", "-y", "50", program)
            try:
                yield Irssi(tmux, log)
            finally:
                await run(*tmux, "kill-server", check=False)


def _furnish(home: Path) -> None:
    home.mkdir()
    (home / "config").write_text(_CONFIG)
    (home / "startup").write_text(f"/log open {home}/all.log ALL\n")


async def run(*command: str, check: bool = True) -> str:
    """What a command prints."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output = (await process.communicate())[0].decode()
    assert process.returncode == 0 or not check, f"{shlex.join(command)}: {output}"
    return output
