"""What the suite refuses: a skip in CI, and a marker that names no row."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

SKIPS = """
import pytest

def test_in_the_body():
    pytest.skip("no weechat")

@pytest.mark.skipif(True, reason="no weechat")
def test_by_marker():
    pass

@pytest.mark.xfail
def test_an_expected_failure_is_no_skip():
    assert False
"""
SKIPS_A_MODULE = "import pytest\npytest.importorskip('no_such_module')\n"
NAMES_NO_ROW = "import pytest\n@pytest.mark.requirement('A01', 'Z99')\ndef test_it():\n    pass\n"


def outcome(folder: Path, ci: str, *sources: str) -> tuple[int, str]:
    """The exit status and the last line of a run of these files under our conftest."""
    for number, source in enumerate(sources):
        (folder / f"test_{number}.py").write_text(source)
    plugins = ("-p", "no:cacheprovider", "-p", "tests.conftest")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", "pyproject.toml", *plugins, "--continue-on-collection-errors", folder],
        cwd=ROOT,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).strip().splitlines()[-1]


def test_outside_ci_a_skip_is_a_skip(tmp_path: Path) -> None:
    status, closing = outcome(tmp_path, "", SKIPS, SKIPS_A_MODULE)
    assert status == pytest.ExitCode.OK and closing.startswith("3 skipped, 1 xfailed in ")


def test_in_ci_a_skip_is_a_failure(tmp_path: Path) -> None:
    status, closing = outcome(tmp_path, "true", SKIPS, SKIPS_A_MODULE)
    assert status == pytest.ExitCode.TESTS_FAILED and closing.startswith("1 failed, 1 xfailed, 2 errors in ")


def test_a_marker_that_names_no_row_stops_the_run(tmp_path: Path) -> None:
    status, said = outcome(tmp_path, "", NAMES_NO_ROW)
    assert status == pytest.ExitCode.USAGE_ERROR and said.endswith("no requirement is called Z99")
