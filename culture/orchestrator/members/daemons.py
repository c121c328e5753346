"""The members' daemons: processes that outlive the orchestrator and are found again."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from culture.clients.shared import calling, ending, pidfile
from culture.clients.shared.ending import TOLD, Ended
from culture.clients.shared.skill.call import PATIENCE, CallFailed, NoDaemon
from culture.config import paths
from culture.lib.process.background import LAST_LINES, BackgroundProcess
from culture.lib.process.handle import wait_gone
from culture.orchestrator.errors import DaemonStays, MemberNotStarted, NoAnswer
from culture.protocol.names import fold
from culture.protocol.split import clip
from culture.protocol.text import Profile, one_line

log = logging.getLogger(__name__)

START_PATIENCE = 60.0
"""Seconds until a daemon's agent must accept prompts."""
ANSWER_PATIENCE = 30.0
"""A daemon that does not answer for this many seconds hangs."""
KNOWN = 20.0
"""Seconds until a daemon whose start was cancelled must have written its pid file."""
_STEP = 0.02
_LAST_LINES = 3
_LONGEST = 400


class DaemonAway(NoAnswer):
    """The member's daemon does not run, or ended before it answered; ask again once it runs."""


End = Callable[[str], Awaitable[tuple[Ended, int]]]
Launch = Callable[[str], BackgroundProcess]
"""Starts the daemon of a nick and creates its account; raises ``MemberNotStarted``."""


class MemberDaemons:
    """Starts, finds, asks and ends the daemons of the team's members."""

    def __init__(
        self,
        launch: Launch,
        *,
        dismiss: Callable[[str], object] = lambda nick: None,
        has_account: Callable[[str], bool] = lambda nick: False,
        end: End = ending.end,
        start_patience: float = START_PATIENCE,
        answer_patience: float = ANSWER_PATIENCE,
    ) -> None:
        self._launch = launch
        self._dismiss = dismiss
        self.has_account = has_account
        """Whether a nick belongs to an account already, of a person or of a revoked agent for example."""
        self._end = end
        self._start_patience = start_patience
        self._answer_patience = answer_patience
        self._children: dict[str, BackgroundProcess] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def ensure(self, nick: str) -> None:
        """Start a member's daemon unless it runs, and wait until it accepts prompts."""
        async with self._turns[fold(nick)]:
            if not await self._attach(nick):
                await self._start(nick)

    async def stop(self, nick: str) -> None:
        """End a member's daemon and its agent's processes; ``DaemonStays`` if even SIGKILL fails."""
        async with self._turns[fold(nick)]:
            how, remaining = await self._end(nick)
            self._reap(nick)
            if how is Ended.STAYS:
                raise DaemonStays(f"{nick} {how.value}; see {paths.log_file(nick)}")
            if remaining:
                log.info("%s %s; ended %d processes that it had left", nick, how.value, remaining)

    async def dismiss(self, nick: str) -> None:
        """Revoke the credentials of a retired member's account; its nick stays reserved."""
        try:
            await asyncio.to_thread(self._dismiss, nick)
        except Exception as error:
            log.warning("the account of %s could not be revoked: %s", nick, error)

    def is_running(self, nick: str) -> bool:
        """Return whether the process of a member's daemon runs."""
        self._reap(nick)
        return pidfile.running(nick) is not None

    async def call(self, nick: str, verb: str, patience: float | None = None, **fields: Any) -> dict[str, Any]:
        """Send a request to a member's daemon and return its answer; ``NoAnswer`` if there is none.

        ``verb``: the kind of request; ``fields``: its data; ``patience``: how many seconds to wait (None: the usual
        time).
        """
        try:
            answer = await calling.call(nick, verb, fields, PATIENCE if patience is None else patience)
        except NoDaemon as why:
            raise DaemonAway(str(why)) from None
        except CallFailed as why:
            raise NoAnswer(str(why)) from None
        return answer if isinstance(answer, dict) else {}

    async def _attach(self, nick: str) -> bool:
        """Return whether a member's daemon already runs and answers; a daemon that hangs is ended."""
        try:
            async with asyncio.timeout(self._start_patience):
                while True:
                    note = pidfile.running(nick)
                    if note is None:
                        return False
                    if note.ready:
                        break
                    await asyncio.sleep(_STEP)
            await self.call(nick, "status", self._answer_patience)
        except (TimeoutError, NoAnswer) as why:
            log.warning("%s runs and does not answer (%s): it is restarted", nick, why)
            await self._end(nick)
            self._reap(nick)
            return False
        return True

    async def _start(self, nick: str) -> None:
        launch = asyncio.ensure_future(asyncio.to_thread(self._launch, nick))
        try:
            child = self._children[nick] = await asyncio.shield(launch)
            await self._until_ready(nick, child)
        except asyncio.CancelledError:
            # The next orchestrator must be able to find every process that was started.
            with suppress(MemberNotStarted):
                child = self._children[nick] = await launch
                await self._until_findable(nick, child)
            raise

    async def _until_ready(self, nick: str, child: BackgroundProcess) -> None:
        try:
            async with asyncio.timeout(self._start_patience):
                while not _is_ready(nick, child.pid):
                    if (code := child.poll()) is not None:
                        raise MemberNotStarted(f"{nick} did not start (exit code {code}): {_log_tail(child)}")
                    await asyncio.sleep(_STEP)
        except TimeoutError:
            await self._end_child(nick, child)
            text = f"{nick} was not ready after {self._start_patience:g} s and was ended: {_log_tail(child)}"
            raise MemberNotStarted(text) from None

    async def _until_findable(self, nick: str, child: BackgroundProcess) -> None:
        """Wait until a started daemon has its pid file or has ended.

        If neither happens in time, the daemon is ended.
        """
        try:
            async with asyncio.timeout(KNOWN):
                while child.poll() is None and pidfile.running(nick) is None:  # noqa: ASYNC110
                    await asyncio.sleep(_STEP)
        except TimeoutError:
            await self._end_child(nick, child)

    async def _end_child(self, nick: str, child: BackgroundProcess) -> None:
        """End a daemon that did not become ready, and the processes that it left."""
        await self._end(nick)
        for signal in (child.terminate, child.kill):
            if child.poll() is None:
                signal()
                # It is our child and not reaped, so the pid cannot belong to another process.
                with suppress(TimeoutError):
                    async with asyncio.timeout(TOLD):
                        await wait_gone(child.pid)
        await self._end(nick)
        self._reap(nick)

    def _reap(self, nick: str) -> None:
        child = self._children.get(nick)
        if child is not None and child.poll() is not None:
            del self._children[nick]


def _is_ready(nick: str, pid: int) -> bool:
    note = pidfile.running(nick)
    return note is not None and note.pid == pid and note.ready


def _log_tail(child: BackgroundProcess) -> str:
    """Return the last lines that a daemon has logged since its start, as one line for IRC."""
    lines = [line.strip() for line in child.output(LAST_LINES).splitlines() if line.strip()]
    return clip(one_line(" / ".join(lines[-_LAST_LINES:]) or "it wrote nothing", Profile.TERMINAL), _LONGEST)
