"""A forked command is like a started one: what the other tests see of a fork holds for what users start."""

import asyncio
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from culture.cli.commands import COMMANDS
from tests.cli.shell import Shell
from tests.support import forks
from tests.support.forks import PYTHONPATH, Command

REFLECTION = "tests.support.reflection"
OWN = "own"


@pytest.fixture
def odd_umask() -> Iterator[None]:
    before = os.umask(0o037)
    yield
    os.umask(before)


async def told(process: Command) -> tuple[dict[str, Any], bytes, int | None]:
    out, err = await process.communicate("grüße\n".encode())
    return json.loads(out), err, process.returncode


async def test_a_fork_is_given_what_a_start_is_given(tmp_path: Path, odd_umask: None) -> None:
    environment = {"PYTHONPATH": PYTHONPATH, "HOME": str(tmp_path), "EMPTY": "", "ODD": "ä=b\nc"}
    arguments = ("--one", "", "two words", "ü")
    forked = await forks.fork(arguments, environment, tmp_path, has_input=True, errors_apart=True, module=REFLECTION)
    pipe = asyncio.subprocess.PIPE
    started = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", REFLECTION, *arguments),
        cwd=tmp_path,
        env=environment,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
    )
    (fork, *fork_ended), (start, *start_ended) = await told(forked), await told(started)
    assert (fork.pop(OWN), start.pop(OWN)) == (forked.pid, started.pid)
    assert fork == start
    assert fork["typed"] == "grüße\n" and fork["environment"]["ODD"] == "ä=b\nc"
    assert fork_ended == start_ended == [b"on stderr\n", 7]


async def test_a_fork_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    """Neither its folder, nor its environment, nor its umask."""
    seen = []
    for each in ("one", "two"):
        (folder := tmp_path / each).mkdir()
        environment = {"PYTHONPATH": PYTHONPATH, each: each}
        process = await forks.fork((), environment, folder, has_input=True, errors_apart=True, module=REFLECTION)
        seen.append((await told(process))[0])
    assert [each["cwd"] for each in seen] == [str(tmp_path / "one"), str(tmp_path / "two")]
    assert "one" not in seen[1]["environment"] and seen[1]["environment"]["two"] == "two"


GROUPS = {re.split("[.:]", place)[2]: name for name, place in COMMANDS.items()}
"""One command of each module or folder of the command line."""


@pytest.mark.parametrize("command", sorted(GROUPS.values()))
async def test_a_fork_says_what_a_start_says(shell: Shell, command: str) -> None:
    """At least one command of each group is really started, whatever the other tests do."""
    forked = await shell.run(command, "--help")
    shell.may_fork = False
    assert await shell.run(command, "--help") == forked
    assert forked.code == 0 and f"culture {command}" in forked.out
