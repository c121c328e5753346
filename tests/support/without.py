"""A Python environment like ours, in which some packages were never installed."""

import sys
import venv
from importlib.metadata import distribution
from pathlib import Path


def python_without(folder: Path, *packages: str) -> str:
    """The interpreter of an environment with everything that ours has but these."""
    venv.create(folder, symlinks=True, with_pip=False)
    (here,) = folder.glob("lib/python*/site-packages")
    left_out = {file.parts[0] for package in packages for file in distribution(package).files or ()}
    (there,) = Path(sys.prefix).glob("lib/python*/site-packages")
    for entry in there.iterdir():
        if entry.name not in left_out and not (here / entry.name).exists():
            (here / entry.name).symlink_to(entry)
    return str(folder / "bin" / "python")
