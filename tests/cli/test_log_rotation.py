"""What a server in the background prints: it does not fill the disk, and nothing of it is lost on the way."""

import importlib
import logging
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from culture.cli.server import log_rotation
from culture.lib.log_lines import LogFormatter
from tests.cli.shell import Shell

MODULES_THAT_LOG = (
    "culture.cli.server.serve",
    "culture.cli.mcp_serve",
    "culture.cli.team.up",
    "culture.cli.web.command",
    "culture.clients.shared.main",
)
PROGRAM = """
import logging, os, sys
from pathlib import Path
from culture.cli.server import log_rotation
log_rotation.begin(Path(sys.argv[1]), most=2_000, kept=3)
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    logging.info("line %d", number)
print("printed")
os.write(2, b"written\\n")
"""


def run(file: Path, first: int, last: int) -> None:
    """A program that logs so many lines into the file."""
    with file.open("ab") as out:
        command = [sys.executable, "-c", PROGRAM, str(file), str(first), str(last)]
        subprocess.run(command, stdout=out, stderr=out, check=True)


def test_a_large_file_is_put_aside_and_the_newest_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "spark.log"
    run(file, 0, 60)
    before = {each.name for each in tmp_path.iterdir()}
    assert before == {"spark.log", "spark.log.1"}
    run(file, 60, 600)
    files = [*(tmp_path / f"spark.log.{number}" for number in (3, 2, 1)), file]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in files[-2:])
    assert all(2_000 <= each.stat().st_size < 2_200 for each in files[:-1]) and file.stat().st_size < 2_200
    lines = [line for each in files for line in each.read_text().splitlines()]
    numbers = [int(line.rpartition(" ")[2]) for line in lines[:-2]]
    assert numbers == list(range(numbers[0], 600)), "the last ones, without a hole"
    assert sorted(lines[-2:]) == ["printed", "written"]


async def test_a_server_puts_aside_what_was_printed_before_it(shell: Shell) -> None:
    file = shell.home / "log" / "spark.log"
    file.parent.mkdir(mode=0o700, parents=True)
    file.touch(mode=0o600)
    os.truncate(file, log_rotation.MOST)
    started = await shell.run("server", "start", "--name", "spark", "--port", "0")
    assert (started.code, started.err) == (0, "")
    aside = file.with_name("spark.log.1")
    assert aside.stat().st_size >= log_rotation.MOST
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
