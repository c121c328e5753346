"""The members' daemons: each a process of its own, that outlives the orchestrator and is found again by the next."""

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
from culture.orchestrator.errors import MemberNotStarted, NoAnswer, Stays
from culture.protocol.names import fold
from culture.protocol.split import clip
from culture.protocol.text import Profile, one_line

log = logging.getLogger(__name__)

START_PATIENCE = 60.0
"""How long a daemon may take until its agent takes prompts."""
ANSWER_PATIENCE = 30.0
"""One that runs and does not answer for so long hangs."""
KNOWN = 20.0
"""How long one that is being started may take until its file says so, when nobody waits for it any more."""
_STEP = 0.02
_LAST_LINES = 3
_LONGEST = 400


class Away(NoAnswer):
    """There is no daemon, or it ended before it answered: the next run of it may be asked again."""


End = Callable[[str], Awaitable[tuple[Ended, int]]]
Launch = Callable[[str], BackgroundProcess]
"""Begins to start the daemon of a nick, with an account; NotStarted when that cannot be."""


class MemberDaemons:
    """Starts them, finds them again, asks and ends them."""

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
        """See to it that it runs and takes prompts; NotStarted says why it does not."""
        async with self._turns[fold(nick)]:
            if not await self._attached(nick):
                await self._start(nick)

    async def stop(self, nick: str) -> None:
        """End it and all that its agent started: it is asked, told, and forced. Stays when even that is in vain."""
        async with self._turns[fold(nick)]:
            how, left = await self._end(nick)
            self._reap(nick)
            if how is Ended.STAYS:
                raise Stays(f"{nick} {how.value}; see {paths.log_file(nick)}")
            if left:
                log.info("%s %s; ended %d processes that it had left", nick, how.value, left)

    async def dismiss(self, nick: str) -> None:
        """Take away from who does not come back what it logged in with; its nick stays its own."""
        try:
            await asyncio.to_thread(self._dismiss, nick)
        except Exception as error:
            log.warning("%s keeps its account: %s", nick, error)

    def is_running(self, nick: str) -> bool:
        """Whether there is a process."""
        self._reap(nick)
        return pidfile.running(nick) is not None

    async def call(self, nick: str, verb: str, patience: float | None = None, **fields: Any) -> dict[str, Any]:
        """Ask it something; NoAnswer says why there is no answer."""
        try:
            said = await calling.call(nick, verb, fields, PATIENCE if patience is None else patience)
        except NoDaemon as why:
            raise Away(str(why)) from None
        except CallFailed as why:
            raise NoAnswer(str(why)) from None
        return said if isinstance(said, dict) else {}

    async def _attached(self, nick: str) -> bool:
        """Whether it runs already, by whomever it was started; one that hangs is ended."""
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
            log.warning("%s runs and does not answer (%s): it is started anew", nick, why)
            await self._end(nick)
            self._reap(nick)
            return False
        return True

    async def _start(self, nick: str) -> None:
        launched = asyncio.ensure_future(asyncio.to_thread(self._launch, nick))
        try:
            child = self._children[nick] = await asyncio.shield(launched)
            await self._until_ready(nick, child)
        except asyncio.CancelledError:
            # Nobody may be left behind whom whoever comes next does not find.
            with suppress(MemberNotStarted):
                child = self._children[nick] = await launched
                await self._make_known(nick, child)
            raise

    async def _until_ready(self, nick: str, child: BackgroundProcess) -> None:
        try:
            async with asyncio.timeout(self._start_patience):
                while not _is_ready(nick, child.pid):
                    if (code := child.poll()) is not None:
                        raise MemberNotStarted(f"{nick} did not start (exit code {code}): {_printed(child)}")
                    await asyncio.sleep(_STEP)
        except TimeoutError:
            await self._end_child(nick, child)
            text = f"{nick} was not ready after {self._start_patience:g} s and was ended: {_printed(child)}"
            raise MemberNotStarted(text) from None

    async def _make_known(self, nick: str, child: BackgroundProcess) -> None:
        """Wait until what was started can be found by its file, or is gone; what cannot is ended."""
        try:
            async with asyncio.timeout(KNOWN):
                while child.poll() is None and pidfile.running(nick) is None:  # noqa: ASYNC110
                    await asyncio.sleep(_STEP)
        except TimeoutError:
            await self._end_child(nick, child)

    async def _end_child(self, nick: str, child: BackgroundProcess) -> None:
        """End what was started here and is not ready, perhaps not even known by its file; then what it has left."""
        await self._end(nick)
        for press in (child.terminate, child.kill):
            if child.poll() is None:
                press()
                # It is ours and not taken note of yet, so the number is nobody else's.
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


def _printed(child: BackgroundProcess) -> str:
    """The end of what a daemon wrote to its log since it was started, as one line that fits into IRC."""
    lines = [line.strip() for line in child.output(LAST_LINES).splitlines() if line.strip()]
    return clip(one_line(" / ".join(lines[-_LAST_LINES:]) or "it wrote nothing", Profile.TERMINAL), _LONGEST)
