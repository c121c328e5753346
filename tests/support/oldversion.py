"""The program as it was at a commit of before, to run servers of both versions in one mesh."""

import subprocess
from pathlib import Path

import pytest

from tests.support.mesh import ROOT

BEFORE_DOORS = "f5a0bdb7f9212ab748798e975c6c688c978fb1da"
"""The last servers that do not tell of a message whether its channel was open."""
_METADATA = "Metadata-Version: 2.1\nName: culture\nVersion: 0.1.0\n"


def program_of(commit: str, folder: Path) -> Path:
    """The program of this commit, put into a folder: a source of servers. Its name was that of the distribution."""
    folder.mkdir()
    known = subprocess.run(
        ["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=ROOT, capture_output=True, check=False
    )
    if known.returncode:
        pytest.fail(f"commit {commit} is not in this clone, which has no full history: git fetch --unshallow")
    packed = subprocess.run(["git", "archive", commit, "culture"], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "-x"], cwd=folder, input=packed.stdout, check=True)
    about = folder / "culture-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(_METADATA)
    return folder
