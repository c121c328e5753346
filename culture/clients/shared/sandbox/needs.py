"""What an agent program needs inside its sandbox: data that each backend declares."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ProgramNeeds:
    """Files under the owner's home, environment variables and hosts; everything else stays outside."""

    folders: tuple[str, ...] = ()
    """Where the program keeps its state; each sandboxed agent has folders of its own in their place."""
    logins: tuple[str, ...] = ()
    """The owner's own files with the program's login, in those folders; writable, as tokens are renewed."""
    settings: tuple[str, ...] = ()
    """The owner's own settings; read-only, as some of them name commands that run outside, too."""
    copies: tuple[str, ...] = ()
    """Files that hold settings and state at once: the agent gets a copy."""
    moved: Mapping[str, str] = field(default_factory=dict)
    """Variables that put one of these folders elsewhere."""
    variables: tuple[str, ...] = ()
    """Environment variables that are let in, as patterns."""
    set: Mapping[str, str] = field(default_factory=dict)
    """Variables that the program has inside."""
    hosts: tuple[str, ...] = ()
    """The hosts of its model and its login, as in ``sandbox.hosts``."""
