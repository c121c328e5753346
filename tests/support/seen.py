"""What the tests saw a backend do: lines of JSON in the folder that $CULTURE_SEEN names, for tools/matrix.py.

One line adds a fact to the table of docs/clients/backends.md, from any test that has a runner::

    seen(runner, mcp="yes")
"""

import json
import os
from pathlib import Path

from culture.clients.shared.backends import backend, found
from culture.clients.shared.base import AgentRunnerBase
from culture.clients.shared.programs import located, version_of
from culture.clients.shared.queued import QueuedRunner

# Read here, as tests give agents an environment of their own.
_FOLDER = os.environ.get("CULTURE_SEEN")


def seen(runner: AgentRunnerBase, **facts: str) -> None:
    """Note facts of a runner's backend; nowhere, unless somebody collects them."""
    name = type(runner).__module__.split(".")[2:3]
    if not _FOLDER or not isinstance(runner, QueuedRunner) or not name:
        return
    row = _row(name[0], runner)
    if row.get("program", "python").startswith("python"):
        # An agent of the tests' own.
        return
    with Path(_FOLDER, f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as lines:
        lines.write(json.dumps({**row, **facts}) + "\n")


def _row(name: str, runner: QueuedRunner) -> dict[str, str]:
    """Which line of the table it is, and the program with its version."""
    command = runner.setup.options.get("acp_command")
    if isinstance(command, list | tuple):
        program = located(str(command[0]))
        short = Path(str(command[0])).name
        return {"backend": name, "program": short, "version": version_of(program) if program else "?"}
    there = [each for each in found(backend(name)) if each.version]
    return {"backend": name, "program": there[0].program, "version": there[0].version or "?"} if there else {}
