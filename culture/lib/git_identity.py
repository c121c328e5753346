"""The name and address that sign a commit: a person's wherever git knows them, otherwise ones that we give."""

from pathlib import Path

from culture.lib.git import IDENTITY_VARIABLES, Git, GitFailed, without_git_variables

TEAM = "culture team"
ADDRESS = "team@culture.invalid"
"""No person can have it: names under ``invalid`` never exist (RFC 2606)."""
_PATIENCE = 10.0


def signature(name: str = TEAM, address: str = ADDRESS) -> dict[str, str]:
    """The variables with which git makes commits of this author."""
    return dict(zip(IDENTITY_VARIABLES, (name, address, name, address), strict=True))


def is_configured(folder: Path) -> bool:
    """Whether git has the name and the address of a person for commits in a folder; what it would guess is none."""
    git = Git(folder, without_git_variables(but=IDENTITY_VARIABLES), {"user.useConfigOnly": "true"})
    for variable in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
        try:
            git.run("var", variable, patience=_PATIENCE)
        except GitFailed as failed:
            return failed.code < 0  # without a git that works nothing is committed
        except OSError:
            return True
    return True


def stand_in(folder: Path, name: str = TEAM, address: str = ADDRESS) -> dict[str, str]:
    """The variables that sign in a person's place; empty where git has the identity of a person."""
    return {} if is_configured(folder) else signature(name, address)
