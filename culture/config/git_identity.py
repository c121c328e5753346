"""Who signs commits where git was never told a name and an address: a person's are used wherever there are any."""

import os
import subprocess
from pathlib import Path

TEAM = "culture team"
ADDRESS = "team@culture.invalid"
"""No person can have it: names under ``invalid`` never exist (RFC 2606)."""
VARIABLES = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
_PATIENCE = 10.0


def signature(name: str = TEAM, address: str = ADDRESS) -> dict[str, str]:
    """The variables with which git makes commits of this author."""
    return dict(zip(VARIABLES, (name, address, name, address), strict=True))


def is_configured(folder: Path) -> bool:
    """Whether git has the name and the address of a person for commits in a folder; what it would guess is none."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in VARIABLES}
    for variable in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
        try:
            done = subprocess.run(
                ["git", "-c", "user.useConfigOnly=true", "var", variable],
                cwd=folder,
                env=kept,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return True  # without a git that works nothing is committed
        if done.returncode:
            return False
    return True


def stand_in(folder: Path, name: str = TEAM, address: str = ADDRESS) -> dict[str, str]:
    """The variables that sign in a person's place; empty where git has the identity of a person."""
    return {} if is_configured(folder) else signature(name, address)
