"""Agents that run as another user of this machine: what is to be done for them is done as that user.

The boundary between an agent and what it must not read is the user: everything of such an agent is in that user's own
home folder, and the files of whoever started it stay closed to it.
"""

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import Any

import typer

from culture.cli import output
from culture.cli.agents.select_agents import listed
from culture.config.agents import AgentConfig
from culture.protocol.vocabulary import Environment, Exit

# Of ours only what says where programs and texts are; neither keys nor tokens.
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "PYTHONPATH")
PATIENCE = 120.0


class WrongUser(Exception):
    """The agent cannot be run as that user; the text says why, and what would help."""


def other_user(agent: AgentConfig) -> pwd.struct_passwd | None:
    """The user that an agent runs as, when that is not the one who asks."""
    if agent.user is None:
        return None
    try:
        user = pwd.getpwnam(agent.user)
    except KeyError:
        raise WrongUser(f"{agent.nick}: there is no user {agent.user} here; make it, or correct `user:`") from None
    if user.pw_uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise WrongUser(f"{agent.nick} runs as {agent.user}, which only root can do: use sudo, or remove `user:`")
    return user


def run_as(user: pwd.struct_passwd, module: str, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run one of our modules as that user, to its end."""
    try:
        return subprocess.run(
            [sys.executable, "-m", module, *words],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
            cwd="/",
            env=environment(user),
            user=user.pw_uid,
            group=user.pw_gid,
            extra_groups=os.getgrouplist(user.pw_name, user.pw_gid),
        )
    except PermissionError:
        raise WrongUser(
            f"{user.pw_name} may not run {sys.executable}: install this program where every user can"
        ) from None
    except subprocess.TimeoutExpired:
        raise WrongUser(f"nothing came from {user.pw_name} within {PATIENCE:g} s") from None


def environment(user: pwd.struct_passwd) -> dict[str, str]:
    """What that user's processes begin with."""
    runtime = Path("/run/user") / str(user.pw_uid)
    return {
        **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
        "HOME": user.pw_dir,
        "USER": user.pw_name,
        "LOGNAME": user.pw_name,
        Environment.HOME.value: str(Path(user.pw_dir) / ".culture"),
        **({"XDG_RUNTIME_DIR": str(runtime)} if runtime.is_dir() else {}),
    }


def delegated(nick: str, command: str, *options: str) -> int | None:
    """Run the command as the agent's user and show what it says: its exit code; None when the agent is ours."""
    agent = listed().get(nick)
    try:
        user = other_user(agent) if agent is not None else None
        if user is None:
            return None
        done = run_as(user, "culture", command, nick, *options)
    except WrongUser as wrong:
        typer.echo(f"culture: {wrong}", err=True)
        return Exit.FAILED
    # That user is not ours, and may be an agent that does not mean us well.
    typer.echo(output.shown(done.stdout), nl=False)
    typer.echo(output.shown(done.stderr), nl=False, err=True)
    return done.returncode


def delegated_report(agent: AgentConfig) -> dict[str, Any] | None:
    """What `culture status` says as the agent's user; None when the agent is ours, or the user has nothing to say."""
    try:
        user = other_user(agent)
        done = run_as(user, "culture", "status", agent.nick, "--json") if user is not None else None
    except WrongUser:
        return None
    try:
        found = json.loads(done.stdout) if done is not None else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
