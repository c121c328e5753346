"""The author name and address of commits: the person's if git has one configured, else ours."""

from pathlib import Path

from culture.lib.git import IDENTITY_VARIABLES, Git, GitFailed, without_git_variables

TEAM = "culture team"
ADDRESS = "team@culture.invalid"
"""No person can have it: names under ``invalid`` never exist (RFC 2606)."""
_PATIENCE = 10.0


def signature(name: str = TEAM, address: str = ADDRESS) -> dict[str, str]:
    """Return the variables that make git name this author and committer in commits."""
    return dict(zip(IDENTITY_VARIABLES, (name, address, name, address), strict=True))


def is_configured(folder: Path) -> bool:
    """Return whether git has a configured name and address for commits in a folder.

    Those that git guesses do not count.
    """
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
    """Return variables that make git name ``name`` as the author, where none is configured.

    Empty if git has a name and address configured for commits in this folder.
    """
    return {} if is_configured(folder) else signature(name, address)
