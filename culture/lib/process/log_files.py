"""Opens a log file for its owner alone."""

import os
from pathlib import Path


def open_private(path: Path, flags: int) -> int:
    """Open a file and return its descriptor; a new one has mode 0600, its folder 0700, and a symlink is refused."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
