"""The agent's processes: found by the token in their environment and by nothing else, neither name nor folder."""

import asyncio
import logging
import os
import secrets
import signal
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from culture.config.process import pinned
from culture.protocol.vocabulary import Environment

log = logging.getLogger(__name__)

LONGEST_LINE = 16 * 1024 * 1024
GRACE = 3.0
# Whoever forks faster than we can look is given up after this.
FORCE = 10.0
# A process that is just becoming another program shows no environment for a moment: one look is not enough.
CLEAN_LOOKS = 2
BETWEEN_LOOKS = 0.005

_PROC = Path("/proc")


def new_token() -> str:
    """A token that no process has yet."""
    return secrets.token_hex(16)


def tokened(environment: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """The environment with a token, and that token: the one it has, else a new one."""
    token = environment.get(Environment.TOKEN) or new_token()
    return {**environment, Environment.TOKEN: token}, token


def carrying(token: str) -> list[int]:
    """The processes of this user that have the token, the caller not among them."""
    us, owner = os.getpid(), os.getuid()
    return [pid for pid in _processes_of(owner) if pid != us and _carries(pid, token)]


async def end_all(token: str, grace: float = GRACE, spare: Collection[int] = ()) -> int:
    """End whatever carries the token and is not to be spared, by force after the grace; how many those were."""
    ended, clean, begun = 0, 0, time.monotonic()
    while clean < CLEAN_LOOKS:
        left = begun + grace - time.monotonic()
        if left < -FORCE:
            log.error("processes carrying our token do not end: %s", carrying(token))
            break
        found = await _end_those_there(token, max(left, 0.0), spare)
        ended += found
        clean = 0 if found else clean + 1
        await asyncio.sleep(BETWEEN_LOOKS)
    return ended


async def spawn(
    argv: Sequence[str], cwd: Path, environment: Mapping[str, str], *, stderr: int | None = None
) -> asyncio.subprocess.Process:
    """Start a program in a session of its own, with pipes; the environment is added to ours."""
    return await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        limit=LONGEST_LINE,
        start_new_session=True,
    )


async def ended(process: asyncio.subprocess.Process) -> int:
    """Wait until the process is dead, and how it died; its ``wait`` lasts while a grandchild holds the pipe."""
    if process.returncode is None:
        with pinned(process.pid) as handle:
            if handle is not None:
                await _death(handle)
    while process.returncode is None:  # noqa: ASYNC110
        # A thread of asyncio's reaps it, and tells the loop a moment later.
        await asyncio.sleep(0.001)
    return process.returncode


async def gone(pid: int) -> None:
    """Wait until a process is dead that somebody else has started and reaps."""
    with pinned(pid) as handle:
        if handle is not None:
            await _death(handle)


async def release(process: asyncio.subprocess.Process) -> None:
    """Let go of a process that is dead or not wanted any more: its pipes are closed, whoever else holds them."""
    # There is no public way to close the pipes of a process; this also kills it if it lives.
    transport: asyncio.SubprocessTransport = process._transport  # type: ignore[attr-defined]
    transport.close()
    await ended(process)
    # The pipes are closed in the loop's next round.
    await asyncio.sleep(0)


async def _end_those_there(token: str, grace: float, spare: Collection[int]) -> int:
    """One look: end what is there; the number that is gone."""
    results = await asyncio.gather(*(_end(pid, token, grace) for pid in carrying(token) if pid not in spare))
    return sum(results)


async def _end(pid: int, token: str, grace: float) -> bool:
    # The handle first, the check second: a handle never moves on to another process, a number does.
    with pinned(pid) as handle:
        if handle is None or not _carries(pid, token):
            return False
        if grace:
            _signal(handle, signal.SIGTERM)
            if await dies_within(handle, grace):
                return True
        _signal(handle, signal.SIGKILL)
        return await dies_within(handle, FORCE)


async def dies_within(handle: int, seconds: float) -> bool:
    """Whether the process of a pidfd is dead, or is so within this time."""
    try:
        async with asyncio.timeout(seconds):
            await _death(handle)
    except TimeoutError:
        return False
    return True


async def _death(handle: int) -> None:
    """Wait until the process behind the handle is dead: that is when a pidfd can be read."""
    loop = asyncio.get_running_loop()
    dead = asyncio.Event()
    loop.add_reader(handle, dead.set)
    try:
        await dead.wait()
    finally:
        loop.remove_reader(handle)


def _signal(handle: int, number: signal.Signals) -> None:
    try:
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        pass


def _processes_of(owner: int) -> Iterator[int]:
    with os.scandir(_PROC) as entries:
        for entry in entries:
            try:
                if entry.name.isdecimal() and entry.stat().st_uid == owner:
                    yield int(entry.name)
            except FileNotFoundError:
                continue


def _carries(pid: int, token: str) -> bool:
    wanted = f"{Environment.TOKEN}={token}".encode()
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False
    return wanted in environment.split(b"\0")
