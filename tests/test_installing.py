"""What `make` shows while it installs."""

import subprocess
import sys
from pathlib import Path

from tools.installing import steps

TOOL = Path(__file__).parent.parent / "tools" / "installing.py"
SAID = ["Obtaining file:///x\n", "Collecting typer>=0.1 (from culture)\n", "  Downloading t.whl\n"]


def test_it_is_told_what_is_fetched_and_how_much_is_installed() -> None:
    lines = [*SAID, "Collecting pydantic-core==2\n", "Installing collected packages: a, b, c\n"]
    assert list(steps(lines)) == ["fetching typer (1)", "fetching pydantic-core (2)", "installing 3 packages"]


def test_what_went_wrong_is_shown_and_passed_on() -> None:
    failing = [sys.executable, "-c", "import sys; print('Collecting x'); sys.exit('no such package')"]
    done = subprocess.run([sys.executable, str(TOOL), *failing], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "no such package" in done.stderr and not done.stdout
