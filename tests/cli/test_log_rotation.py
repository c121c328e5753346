"""What a server in the background prints: it does not fill the disk, and nothing of it is lost on the way."""

import importlib
import logging
import os
import stat
import sys
from pathlib import Path

import pytest

from culture.lib.log_lines import LogFormatter
from culture.lib.process.log_rotation import MAX_BYTES
from tests.cli.shell import Shell

MODULES_THAT_LOG = (
    "culture.cli.server.serve",
    "culture.cli.mcp_serve",
    "culture.cli.team.up",
    "culture.cli.web.command",
    "culture.clients.shared.main",
)


async def test_a_server_puts_aside_what_was_printed_before_it(shell: Shell) -> None:
    file = shell.home / "log" / "spark.log"
    file.parent.mkdir(mode=0o700, parents=True)
    file.touch(mode=0o600)
    os.truncate(file, MAX_BYTES)
    started = await shell.run("server", "start", "--name", "spark", "--port", "0")
    assert (started.code, started.err) == (0, "")
    aside = file.with_name("spark.log.1")
    assert aside.stat().st_size >= MAX_BYTES
    assert file.stat().st_size < 10_000 and stat.S_IMODE(file.stat().st_mode) == 0o600
    status = await shell.run("server", "status", "--name", "spark")
    assert f"log         {file}\n" in status.out


def test_log_line_has_no_controls_of_others() -> None:
    """A nick, a reason or a name that somebody sent makes neither a line of its own nor moves the cursor."""
    formatter = LogFormatter()
    sent = "bye\r\n2026-01-01 INFO culture: all is well\x1b]0;title\x07\u202e\x9b2J"
    line = formatter.format(logging.makeLogRecord({"msg": "%s quits: %s", "args": ("spark-eve", sent), "name": "n"}))
    assert "\n" not in line and line.isprintable()
    assert "spark-eve quits: bye\u240d\u240a2026-01-01 INFO" in line
    try:
        raise ValueError(sent)
    except ValueError:
        record = logging.makeLogRecord({"msg": "failed", "exc_info": sys.exc_info(), "levelname": "ERROR"})
    first, *trace = formatter.format(record).splitlines()
    assert first.endswith("failed") and trace[0].startswith("Traceback") and all(map(str.isprintable, trace))


@pytest.mark.parametrize("module", MODULES_THAT_LOG)
def test_every_program_logs_with_clean_lines(module: str) -> None:
    source = Path(str(importlib.import_module(module).__file__)).read_text()
    assert "basicConfig" not in source and "start_logging(" in source
