"""From what agents.yaml says to the sandbox of an agent, of its supervisor, and the gate that both go out by."""

import os
import pwd
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.sandbox.bubblewrap import Sandbox
from culture.clients.shared.sandbox.gate import ForbiddenPorts, NetworkGate
from culture.clients.shared.sandbox.needs import ProgramNeeds
from culture.clients.shared.turn import Backend
from culture.config import paths
from culture.config.agents import AgentConfig, ServerAddress
from culture.config.errors import ConfigError
from culture.config.load import load_server
from culture.config.sandbox import SandboxConfig

SUPERVISOR = "supervisor"


def needs_of(kind: Backend, options: Mapping[str, object]) -> ProgramNeeds:
    """What the program of a backend needs inside, with these options of the agent."""
    if kind.needs_of is None:
        return kind.needs
    module, _, attribute = kind.needs_of.partition(":")
    needs: ProgramNeeds = getattr(import_module(module), attribute)(options)
    return needs


def sandbox_of(agent: AgentConfig, kind: Backend) -> Sandbox | None:
    """The sandbox of an agent's program; None where it has none."""
    if agent.sandbox.kind != "bwrap":
        return None
    needs = needs_of(kind, agent.backend_options)
    return Sandbox(agent.nick, agent.directory, agent.sandbox, needs, gate_socket(agent.nick, agent.sandbox))


def supervisors(sandbox: Sandbox | None, kind: Backend, options: Mapping[str, object]) -> Sandbox | None:
    """The sandbox of what judges an agent that has one: the same machine, without what is listed for the agent."""
    if sandbox is None:
        return None
    config = sandbox.config.model_copy(update={"read": (), "write": ()})
    return replace(sandbox, config=config, needs=needs_of(kind, options), role=SUPERVISOR)


def gate_socket(nick: str, config: SandboxConfig) -> Path | None:
    """Where the gate of an agent's sandbox listens; None without network."""
    return paths.agent_socket(nick).with_suffix(".net") if config.network == "on" else None


def gate_of(nick: str, server: ServerAddress, *sandboxes: Sandbox | None) -> NetworkGate | None:
    """The gate for these sandboxes of one agent; None where there is none, or no network for them."""
    there = [each for each in sandboxes if each is not None and each.gate is not None]
    if not there or there[0].gate is None:
        return None
    rules = [rule for each in there for rule in each.rules]
    return NetworkGate(nick, there[0].gate, list(dict.fromkeys(rules)), forbidden_ports(server))


def forbidden_ports(server: ServerAddress) -> ForbiddenPorts:
    """The ports of the agent's server, and of what culture.yaml has listen on this machine."""
    ports = {server.port}
    try:
        config = load_server().config
        ports |= {each.port for each in config.listen} | {config.web.port}
    except ConfigError:
        pass
    return ForbiddenPorts(server.host, server.port, frozenset(ports - {0}))


def check(agent: AgentConfig, kind: Backend) -> None:
    """WrongConfiguration when the sandbox that an agent wants cannot be had."""
    sandbox = sandbox_of(agent, kind)
    if sandbox is not None:
        sandbox.check()
    if agent.sandbox.kind != "user":
        return
    if agent.user is None:
        raise WrongConfiguration(f"{agent.nick}: sandbox: user says that it runs as another user: name that in `user:`")
    try:
        is_that_user = pwd.getpwnam(agent.user).pw_uid == os.geteuid()
    except KeyError:
        is_that_user = False
    if not is_that_user:
        raise WrongConfiguration(
            f"{agent.nick}: sandbox: user: it runs as {agent.user} only, and this is another user: start it with "
            f"`sudo culture start {agent.nick}`"
        )
