"""A clone with nothing but what its Makefile needs, and programs of ours on the PATH."""

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def clone(folder: Path) -> Path:
    """A folder with the Makefile and what makes the environment."""
    (folder / "tools").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "tools/environment", "tools/installing.py"):
        shutil.copy2(ROOT / name, folder / name)
    return folder


def program(file: Path, script: str) -> Path:
    """A program that is this script of the shell."""
    file.parent.mkdir(exist_ok=True, parents=True)
    file.unlink(missing_ok=True)  # a link to a program of the system is replaced, not written through
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


def make(folder: Path, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run make in a folder, with nothing of an outer make."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"}
    return subprocess.run(
        [str(shutil.which("make")), "--no-print-directory", *words],
        cwd=folder,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
