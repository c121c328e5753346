"""Runs commands as the user that an agent runs as (`user:` in agents.yaml).

The user id is the boundary between an agent and files that it must not read. All files of such an agent are in that
user's home folder, and the files of the person who started it stay closed to it. So `culture start` runs this module
as that user (`python -m`), and passes the agents' part of agents.yaml and their tokens through a pipe.
"""

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from culture.cli import output
from culture.cli.agents.select_agents import configured_agents, load
from culture.config import paths
from culture.config.agents import AgentConfig
from culture.config.yaml_document import read
from culture.lib.files import replace_file
from culture.protocol.vocabulary import Environment, Exit

# Passed on: where programs are and which language; neither keys nor tokens.
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "PYTHONPATH")
PATIENCE = 120.0


class WrongUser(Exception):
    """An agent cannot run as its user in agents.yaml; the message says why and what to do."""


def other_user(agent: AgentConfig) -> pwd.struct_passwd | None:
    """Return the user that an agent runs as; None if that is the current user.

    WrongUser is raised if there is no such user, or the current user may not switch to it.
    """
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


def run_as(user: pwd.struct_passwd, module: str, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run one of our Python modules as another user; return its exit code and output.

    ``words``: arguments of the module. ``stdin``: text for its standard input. WrongUser is raised if that user may not
    run Python, or the module takes too long.
    """
    try:
        return subprocess.run(
            [sys.executable, "-m", module, *words],
            input=stdin,
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
    """Return the environment variables with which a process of another user is started."""
    runtime = Path("/run/user") / str(user.pw_uid)
    return {
        **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
        "HOME": user.pw_dir,
        "USER": user.pw_name,
        "LOGNAME": user.pw_name,
        Environment.HOME.value: str(Path(user.pw_dir) / ".culture"),
        **({"XDG_RUNTIME_DIR": str(runtime)} if runtime.is_dir() else {}),
    }


def run_as_owner(nick: str, command: str, *options: str) -> int | None:
    """Run a `culture` command about an agent as the user that the agent runs as.

    Returns the exit code of the command. If the agent runs as the current user, nothing is run, and None is returned.
    """
    agent = configured_agents().get(nick)
    try:
        user = other_user(agent) if agent is not None else None
        if user is None:
            return None
        done = run_as(user, "culture", command, nick, *options)
    except WrongUser as wrong:
        typer.echo(f"culture: {wrong}", err=True)
        return Exit.FAILED
    # That user may be an agent, so its output is not trusted.
    typer.echo(output.clean(done.stdout), nl=False)
    typer.echo(output.clean(done.stderr), nl=False, err=True)
    return done.returncode


def report_as_owner(agent: AgentConfig) -> dict[str, Any] | None:
    """Return the status of an agent, read by a process of the user that the agent runs as.

    None if that is the current user or the status could not be read.
    """
    try:
        user = other_user(agent)
        done = run_as(user, "culture", "status", agent.nick, "--json") if user is not None else None
    except WrongUser:
        return None
    try:
        report = json.loads(done.stdout) if done is not None else None
    except ValueError:
        return None
    return report if isinstance(report, dict) else None


_MARK = "# Handed over by the user who starts these agents; it is replaced at each start."


_MODULE = "culture.cli.agents.sudo"


def hand_over(user: pwd.struct_passwd, agents: Sequence[AgentConfig], file: Path | None = None) -> int:
    """Start agents as another user, passing their settings and tokens; return the exit code.

    ``file``: agents.yaml, if not the usual one.
    """
    from culture.cli.agents import agent_login  # loads the accounts of the server

    data = read(file or paths.agents_file()).data
    entries = data.get("agents")
    theirs = [each for each in entries if each.get("user") == user.pw_name] if isinstance(entries, list | tuple) else []
    tokens = {agent.nick: token for agent in agents if (token := agent_login.read_token(agent.nick))}
    handed_over = json.dumps({"config": {**data, "agents": theirs}, "tokens": tokens})
    done = run_as(user, _MODULE, *(agent.nick for agent in agents), stdin=handed_over)
    typer.echo(output.clean(done.stdout), nl=False)
    typer.echo(output.clean(done.stderr), nl=False, err=True)
    return done.returncode


def receive(nicks: Sequence[str], text_in: str) -> int:
    """Store the settings and tokens that ``hand_over`` passed, and start the agents.

    It runs as the user of the agents, and returns the exit code. ``text_in``: the settings and tokens as JSON.
    """
    from culture.cli.agents import agent_login
    from culture.cli.agents.lifecycle import start_all

    data = json.loads(text_in)
    file = paths.agents_file()
    if file.exists() and not file.read_text(encoding="utf-8").startswith(_MARK):
        print(f"culture: {file} is this user's own: move those agents there, without `user:`", file=sys.stderr)
        return 1
    replace_file(file, f"{_MARK}\n{json.dumps(data['config'], indent=1)}\n")
    for nick, token in data["tokens"].items():
        agent_login.store_token(nick, token)
    settings = load()
    return start_all(settings, [agent for nick in nicks if (agent := settings.agent(nick)) is not None])


if __name__ == "__main__":
    sys.exit(receive(sys.argv[1:], sys.stdin.read()))
