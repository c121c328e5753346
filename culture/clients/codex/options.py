"""From an agent's setup to what Codex is started with; what cannot work is said before anything is started."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codex_cli_bin import bundled_codex_path, bundled_path_dir  # type: ignore[import-untyped]

from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.options import check_directory, chosen
from culture.clients.shared.programs import installing
from culture.clients.shared.turn import RunnerSetup

POLICIES = ("never", "on-request", "untrusted")
SANDBOXES = ("danger-full-access", "workspace-write", "read-only")
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra")
"""From the least to the most; which of them there are is for the model to say."""
OTHER_NAMES = {"off": "none", "disabled": "none", "ultrathink": "max"}
# The last of all is no deeper thought but a team of agents.
DEEPEST = "max"
DEEP = "high"
GOALS = "features.goals"
USER_INPUT = "features.default_mode_request_user_input"
VARIABLES = "shell_environment_policy.set"
OURS = "CULTURE_"


def program() -> tuple[Path, Path | None]:
    """The program that the package of its makers brings along, and the folder of what it uses itself."""
    try:
        return bundled_codex_path(), bundled_path_dir()
    except FileNotFoundError as error:
        raise WrongConfiguration(
            f"Codex is not installed whole, install it again with `{installing('codex')}`: {error}"
        ) from error


def effort(thinking: str) -> str:
    """How hard to think, in Codex's words."""
    wanted = OTHER_NAMES.get(thinking, thinking)
    if wanted not in EFFORTS:
        raise WrongConfiguration(f"thinking: {thinking!r} is none of {', '.join([*EFFORTS, *OTHER_NAMES])}")
    return wanted


def fitting(wanted: str, offered: Sequence[str]) -> str:
    """The nearest to it that a model offers; itself when the model does not say."""
    known = [level for level in offered if level in EFFORTS]
    return min(known, key=lambda level: abs(EFFORTS.index(level) - EFFORTS.index(wanted)), default=wanted)


def ours(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables by which the harness finds what an agent has started, and is found by it."""
    return {name: value for name, value in environment.items() if name.startswith(OURS)}


def servers(settings: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, str]:
    """The same for the MCP servers that Codex starts, to which it lets next to nothing through."""
    started = [name for name, each in (settings.get("mcp_servers") or {}).items() if each.get("command")]
    known = ours(environment).items()
    return {f"mcp_servers.{server}.env.{name}": value for server in started for name, value in known}


def thread(setup: RunnerSetup, environment: Mapping[str, str]) -> dict[str, Any]:
    """What a thread is begun or taken up with."""
    check_directory(setup.directory)
    wanted = {
        "cwd": str(setup.directory),
        "approvalPolicy": chosen(setup.options, "approval_policy", POLICIES),
        "sandbox": chosen(setup.options, "sandbox_mode", SANDBOXES),
        "config": {
            # A login shell would forget our interpreter, which the skill needs to be the first on PATH.
            "allow_login_shell": False,
            # For a goal it would begin turn after turn by itself, and nobody can refuse it one.
            GOALS: False,
            # What it asks its user becomes a question in the room.
            USER_INPUT: True,
            # Whatever the owner lets through to commands: by these the harness finds them, and they find the harness.
            **{f"{VARIABLES}.{name}": value for name, value in ours(environment).items()},
        },
    }
    return {**wanted, "model": setup.model} if setup.model else wanted
