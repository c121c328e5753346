"""What the suite refuses: a skip in CI, a marker that names no row, and what fails twice."""

import os
import shutil
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


FAILS_ONCE = """
from pathlib import Path

def test_is_unsteady():
    tried = Path("tried")
    if not tried.exists():
        tried.touch()
        assert False

def test_is_steady():
    pass
"""
FAILS = "def test_is_wrong():\n    assert False\n"


ASKS_FOR_SURROUNDINGS = """
import os
from pathlib import Path

def test_the_machine_is_a_fresh_one():
    home = Path(os.environ.pop("HOME"))
    assert home.is_dir() and not list(home.iterdir())
    assert {"CI", "PATH"} <= set(os.environ)
    set_up = {"LANG", "LC_ALL", "XDG_RUNTIME_DIR", "USER", "LOGNAME", "EDITOR", "CULTURE_TEST_SECRET"}
    assert not set_up & set(os.environ)
    assert not [name for name in os.environ if name.startswith(("GIT_", "PIP_", "npm_", "PYTHON"))]
    mask = os.umask(0o077)
    assert mask == 0o077
"""


# No plugin of this environment, since loading all takes longer than these tests.
PLAIN = "exec env PYTEST_DISABLE_PLUGIN_AUTOLOAD=1"


def ci(folder: Path, source: str, types: str = "true") -> tuple[int, str]:
    """The exit status of `.ci/run` on a project with these tests, and what it says; ``types`` checks its types."""
    shutil.copytree(ROOT / ".ci", folder / ".ci", dirs_exist_ok=True)
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests" / "test_it.py").write_text(source)
    (folder / ".venv" / "bin").mkdir(parents=True, exist_ok=True)
    pytest_of_ours = folder / ".venv" / "bin" / "pytest"
    pytest_of_ours.write_text(f'#!/bin/sh\n{PLAIN} "{sys.executable}" -m pytest -q -ra -c /dev/null --rootdir . "$@"\n')
    pytest_of_ours.chmod(0o700)
    (folder / "Makefile").write_text(
        f"lint collected debian agents:\n\t@true\ntypes:\n\t@{types}\ntest:\n\t@.venv/bin/pytest\n"
    )
    done = subprocess.run(["bash", ".ci/run"], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_ci_tries_a_failed_test_once_more_and_names_it(tmp_path: Path) -> None:
    status, said = ci(tmp_path, FAILS_ONCE)
    assert status == 0
    assert "passed only the second time:\ntests/test_it.py::test_is_unsteady\n" in said


def test_a_test_that_passes_only_the_second_time_is_written_down_and_red_the_next_time(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "unsteady.txt").write_text("# tests\ntests/test_it.py::test_is_wrong 2026-11-01\n")
    assert ci(tmp_path, FAILS_ONCE)[0] == 0
    record = (tmp_path / "tests" / "unsteady.txt").read_text().splitlines()
    assert [line.split()[0] for line in record[2:]] == ["tests/test_it.py::test_is_unsteady"]
    (tmp_path / "tried").unlink()
    status, said = ci(tmp_path, FAILS_ONCE)
    assert status == 1 and "once more, alone:" not in said
    assert "not tried once more" in said and said.count("tests/test_it.py::test_is_unsteady") == 2


def test_ci_runs_the_tests_as_on_a_machine_that_nobody_has_set_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LANG", "XDG_RUNTIME_DIR", "GIT_AUTHOR_NAME", "PIP_CERT", "CULTURE_TEST_SECRET"):
        monkeypatch.setenv(name, "C.UTF-8")
    status, said = ci(tmp_path, ASKS_FOR_SURROUNDINGS)
    assert status == 0, said


def test_what_fails_twice_is_red(tmp_path: Path) -> None:
    status, said = ci(tmp_path, FAILS)
    assert status == 1
    assert "once more, alone:" in said and "passed only the second time" not in said


def test_wrong_types_are_red_though_all_tests_pass(tmp_path: Path) -> None:
    status, said = ci(tmp_path, "def test_is_right():\n    pass\n", types="echo 'a.py:1: error'; false")
    assert status != 0
    assert "a.py:1: error" in said and "1 passed" in said
