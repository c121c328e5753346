"""Hands agents over to another user: their part of agents.yaml and their tokens, through a pipe."""

import json
import pwd
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from culture.cli import output
from culture.cli.agents import agent_login
from culture.cli.agents.select_agents import load
from culture.cli.agents.sudo import run_as
from culture.config import paths
from culture.config.agents import AgentConfig
from culture.config.yaml_document import read
from culture.lib.files import replace_file

MARK = "# Handed over by the user who starts these agents; it is replaced at each start."


MODULE = "culture.cli.agents.sudo_handover"


def hand_over(user: pwd.struct_passwd, agents: Sequence[AgentConfig], file: Path | None = None) -> int:
    """Start agents as that user; the exit code."""
    data = read(file or paths.agents_file()).data
    listed = data.get("agents")
    theirs = [each for each in listed if each.get("user") == user.pw_name] if isinstance(listed, list | tuple) else []
    tokens = {agent.nick: token for agent in agents if (token := agent_login.token(agent.nick))}
    given = json.dumps({"config": {**data, "agents": theirs}, "tokens": tokens})
    done = run_as(user, MODULE, *(agent.nick for agent in agents), given=given)
    typer.echo(output.shown(done.stdout), nl=False)
    typer.echo(output.shown(done.stderr), nl=False, err=True)
    return done.returncode


def receive(nicks: Sequence[str], given: str) -> int:
    """As that user: keep what was handed over, and start the agents."""
    from culture.cli.agents.start import start_all

    handed = json.loads(given)
    file = paths.agents_file()
    if file.exists() and not file.read_text(encoding="utf-8").startswith(MARK):
        print(f"culture: {file} is this user's own: move those agents there, without `user:`", file=sys.stderr)
        return 1
    replace_file(file, f"{MARK}\n{json.dumps(handed['config'], indent=1)}\n")
    for nick, token in handed["tokens"].items():
        agent_login.keep(nick, token)
    settings = load()
    return start_all(settings, [agent for nick in nicks if (agent := settings.agent(nick)) is not None])


if __name__ == "__main__":
    sys.exit(receive(sys.argv[1:], sys.stdin.read()))
