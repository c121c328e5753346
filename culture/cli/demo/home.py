"""A home folder that is there for one demonstration: its own environment, and whatever runs in it."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from culture.lib.files import private_directory
from culture.lib.process.orphans import carrying, end_all_blocking
from culture.protocol.vocabulary import Environment

_KEPT = ("PATH", "LANG", "LC_ALL", "TERM", "TMPDIR", "PYTHONPATH", "NO_COLOR")


@contextmanager
def temporary_home() -> Iterator[Path]:
    """A new folder that everything of ours takes for its home until the end, when it is removed with all it holds."""
    folder = Path(tempfile.mkdtemp(prefix="culture-demo-"))
    before = dict(os.environ)
    try:
        os.environ.clear()
        os.environ.update({name: before[name] for name in _KEPT if name in before})
        runtime = private_directory(folder / "run")
        os.environ.update({Environment.HOME: str(folder), "HOME": str(folder), "XDG_RUNTIME_DIR": str(runtime)})
        yield folder
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(folder, ignore_errors=True)


def processes_of(folder: Path) -> list[int]:
    """The processes that have this folder as their home, the caller not among them."""
    return carrying(str(folder), Environment.HOME)


def end_those_of(folder: Path, grace: float) -> None:
    """End what still runs there, by force after the grace."""
    end_all_blocking(str(folder), Environment.HOME, grace)
