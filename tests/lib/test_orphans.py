"""Processes are found and ended by their token, however they were started and whatever they do."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from culture.lib.process import orphans
from culture.lib.process.orphans import carrying, end_all, new_token
from culture.lib.process.pipes import ended, release, spawn
from culture.protocol.vocabulary import Environment
from tests.support.waiting import PATIENCE

# Says "ready" when it can be found, and stays.
STAY = "import time; print('ready', flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {STAY}"
# A daemon of the old school: its parent ends, it has a session of its own and belongs to init.
DETACHED = f"""
import os
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
{STAY}
"""
# Answers the end of one process by starting another, ten times over.
HYDRA = """
import os, signal, sys, time
def head(left):
    def grow(*_):
        if left and os.fork() == 0:
            head(left - 1)
        else:
            os._exit(0)
    signal.signal(signal.SIGTERM, grow)
    while True:
        time.sleep(600)
print('ready', flush=True)
head(10)
"""


Start = Callable[..., Awaitable[asyncio.subprocess.Process]]


@pytest.fixture
async def token() -> AsyncIterator[str]:
    token = new_token()
    yield token
    await end_all(token, grace=0)


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Runs a piece of Python that carries a token, until it says that it is ready."""
    processes: list[asyncio.subprocess.Process] = []

    async def started(code: str, token: str, cwd: Path = Path("/")) -> asyncio.subprocess.Process:
        process = await spawn([sys.executable, "-c", code], cwd, {Environment.TOKEN: token})
        processes.append(process)
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            assert await process.stdout.readline() == b"ready\n"
        return process

    yield started
    for process in processes:
        await release(process)


async def test_tokens_differ() -> None:
    assert len({new_token() for _ in range(100)}) == 100


@pytest.mark.fault("E6")
@pytest.mark.parametrize("code", [STAY, STUBBORN, DETACHED, HYDRA], ids=["plain", "stubborn", "detached", "hydra"])
async def test_whatever_carries_the_token_is_ended(start: Start, code: str, token: str) -> None:
    await start(code, token)
    assert len(carrying(token)) == 1
    assert await end_all(token, grace=0.2) >= 1
    assert carrying(token) == []


@pytest.mark.fault("E6")
async def test_grandchildren_are_ended_too(start: Start, token: str) -> None:
    family = "import subprocess; subprocess.run(['sh', '-c', 'sh -c \"echo ready; exec sleep 600\" & wait'])"
    await start(family, token)
    assert await end_all(token) == 3
    assert carrying(token) == []


@pytest.mark.fault("E7")
async def test_the_same_program_in_the_same_folder_survives(start: Start, token: str, tmp_path: Path) -> None:
    """E7: name, folder and code are alike; only the token differs, and one's is the beginning of the other's."""
    others = [f"{token}0", token[:-1], ""]
    survivors = [await start(STAY, other, tmp_path) for other in others]
    await start(STAY, token, tmp_path)
    assert await end_all(token) == 1
    assert [survivor.returncode for survivor in survivors] == [None] * 3
    for survivor in survivors:
        os.kill(survivor.pid, 0)


@pytest.mark.fault("E7")
async def test_a_number_that_went_to_another_process_is_not_signalled(
    start: Start, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E7: between the search and the signal, the process found may be gone and its number another's."""
    bystander = await start(STAY, new_token())
    monkeypatch.setattr(orphans, "carrying", lambda _: [bystander.pid])
    assert await end_all(token, grace=0) == 0
    os.kill(bystander.pid, 0)


def test_the_caller_is_not_found() -> None:
    token = new_token()
    code = f"from culture.lib.process.orphans import carrying; print(carrying({token!r}))"
    found = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, Environment.TOKEN: token}, capture_output=True, text=True
    )
    assert found.stdout == "[]\n"


async def test_a_polite_process_may_finish(start: Start, token: str, tmp_path: Path) -> None:
    polite = (
        f"import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: (open('bye', 'w').close(), sys.exit(7)))\n{STAY}"
    )
    process = await start(polite, token, tmp_path)
    assert await end_all(token) == 1
    assert (tmp_path / "bye").exists()
    assert await ended(process) == 7


@pytest.mark.fault("E6")
async def test_a_death_is_noticed_while_a_grandchild_holds_the_pipe(start: Start, token: str) -> None:
    """``Process.wait`` may hang then."""
    holder = f"import subprocess; subprocess.Popen(['sleep', '600']); {STAY}"
    process = await start(holder, token)
    process.kill()
    async with asyncio.timeout(PATIENCE):
        assert await ended(process) == -signal.SIGKILL
    assert len(carrying(token)) == 1


async def test_an_end_that_was_before_is_noticed(token: str) -> None:
    process = await spawn(["sh", "-c", "exit 3"], Path("/"), {Environment.TOKEN: token})
    async with asyncio.timeout(PATIENCE):
        assert [await ended(process), await ended(process)] == [3, 3]
    await release(process)


async def test_a_program_has_a_session_of_its_own_and_our_environment(start: Start, token: str, tmp_path: Path) -> None:
    process = await start(STAY, token, tmp_path)
    assert os.getsid(process.pid) == process.pid
    assert os.readlink(f"/proc/{process.pid}/cwd") == str(tmp_path)
    with open(f"/proc/{process.pid}/environ", "rb") as environment:  # noqa: ASYNC230
        assert f"PATH={os.environ['PATH']}".encode() in environment.read().split(b"\0")


async def test_long_lines_are_read(token: str) -> None:
    process = await spawn([sys.executable, "-c", "print('x' * 4_000_000)"], Path("/"), {Environment.TOKEN: token})
    assert process.stdout is not None
    assert len(await process.stdout.readline()) == 4_000_001
    assert await ended(process) == 0
    await release(process)


async def test_ending_nothing_is_nothing() -> None:
    assert await end_all(new_token()) == 0


async def test_a_cancelled_wait_leaves_no_descriptor(start: Start, token: str) -> None:
    process = await start(STAY, token)
    before = len(os.listdir("/proc/self/fd"))
    waiting = asyncio.create_task(ended(process))
    await asyncio.sleep(0)
    waiting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waiting
    assert len(os.listdir("/proc/self/fd")) == before


async def test_what_is_let_go_is_dead_and_its_pipes_are_closed(start: Start, token: str) -> None:
    holder = f"import subprocess; subprocess.Popen(['sleep', '600']); {STAY}"
    before = len(os.listdir("/proc/self/fd"))
    process = await start(holder, token)
    await release(process)
    assert process.returncode == -signal.SIGKILL
    assert len(os.listdir("/proc/self/fd")) == before
