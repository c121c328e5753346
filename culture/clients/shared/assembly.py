"""From what agents.yaml says to a daemon that can be started."""

import logging
import math
import os
import sys
from dataclasses import replace
from pathlib import Path

from culture.clients.shared.backends import NoBackend, backend, installed, runner_class, supervisor_class
from culture.clients.shared.base import AgentRunnerBase, SupervisorBase
from culture.clients.shared.daemon import AgentDaemon
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.instructions import instructions
from culture.clients.shared.sandbox import selection
from culture.clients.shared.sandbox.bubblewrap import Sandbox
from culture.clients.shared.supervisor import Supervisor, SupervisorSetup
from culture.clients.shared.turn import Backend, RunnerSetup, chosen_model
from culture.clients.shared.vouching import Company
from culture.config import paths
from culture.config.agents import (
    BACKEND_FIELDS,
    NO_SUPERVISOR,
    AgentConfig,
    AgentsConfig,
    ServerAddress,
    SupervisorConfig,
)
from culture.config.errors import ConfigError
from culture.config.listen_policy import is_loopback
from culture.config.load import load_agents
from culture.lib import git_identity
from culture.protocol.names import fold, nearest
from culture.protocol.vocabulary import Environment
from culture.runtime import REAL, Runtime
from culture.transport import Address, ClientIdentity

log = logging.getLogger(__name__)


def assemble(config: AgentsConfig, nick: str, file: Path | None = None, *, runtime: Runtime = REAL) -> AgentDaemon:
    """The daemon of an agent; WrongConfiguration says what to change. ``file`` is where the configuration is from."""
    agent = _agent(config, nick)
    if not agent.directory.is_dir():
        raise WrongConfiguration(f"{agent.nick}: the directory {agent.directory} is not there; make it, or correct it")
    instructions(agent.nick, _instructions_file(agent))
    try:
        runner_class(backend(agent.agent))
    except NoBackend as error:
        raise WrongConfiguration(f"{agent.nick}: {error}") from None
    kind = backend(agent.agent)
    selection.check(agent, kind)
    sandbox = selection.sandbox_of(agent, kind)
    supervisor, missing = _supervisor(agent, sandbox, runtime=runtime)
    watching = supervisor.setup.sandbox if isinstance(supervisor, Supervisor) else None
    server = config.server
    loud = {fold(each.nick) for each in config.agents if each.may_call_all}
    return AgentDaemon(
        agent,
        Address(server.host, server.port, server.tls, server.fingerprint, server.user),
        identity(agent),
        make_runner,
        may_call_all=lambda sender: fold(sender) in loud,
        supervisor=supervisor,
        no_supervisor=missing,
        company=Company(config, file, read),
        gate=selection.gate_of(agent.nick, server, sandbox, watching),
        ask_bound=_ask_bound(agent, kind),
        page=_page(agent, server),
        runtime=runtime,
    )


def _page(agent: AgentConfig, server: ServerAddress) -> str | None:
    """The address of the web page of a server on this machine, for the links in posts; None where none is told."""
    said = agent.webhooks
    if not is_loopback(server.host) or not any((said.url, said.on_question, said.on_timeout, said.on_error)):
        return None
    from culture.config.load import load_server  # brings all that a server can be told

    try:
        return load_server().config.web.url
    except ConfigError as wrong:
        log.warning("links in alerts do not lead to the web page: %s", wrong)
        return None


def _ask_bound(agent: AgentConfig, kind: Backend) -> float | None:
    """How long a call waits for an answer; None where it waits until the question ends."""
    bound = kind.ask_bound if agent.ask_bound is None else agent.ask_bound
    return None if bound is None or math.isinf(bound) else bound


def read(file: Path) -> AgentsConfig:
    """An agents.yaml with the fields of the installed backends; ConfigError says what is wrong with it."""
    return load_agents(file, {**BACKEND_FIELDS, **backend_fields()}).config


def identity(agent: AgentConfig) -> ClientIdentity:
    """Who the agent is on the server: with a login where it has a token, else by its nick alone."""
    secret = _token(paths.secret_file(agent.nick))
    return ClientIdentity(agent.nick, agent.nick if secret else None, secret, f"{agent.nick} ({agent.agent})")


def make_runner(agent: AgentConfig, session: str | None, token: str) -> AgentRunnerBase:
    """A runner of the agent's backend."""
    kind = backend(agent.agent)
    setup = RunnerSetup(
        nick=agent.nick,
        directory=agent.directory,
        environment={**environment(agent.nick, token), **_wiki(agent), **_signature(agent)},
        model=chosen_model(agent.model, kind.default_model),
        thinking=agent.thinking,
        instructions=instructions(agent.nick, _instructions_file(agent), rooms=agent.channels, user=agent.user),
        options=agent.backend_options,
        resume=session,
        sandbox=selection.sandbox_of(agent, kind),
    )
    make = runner_class(kind)
    return make(setup)  # type: ignore[call-arg]


def _instructions_file(agent: AgentConfig) -> Path | None:
    """The agent's own file, which is read outside of its sandbox."""
    file, writable = agent.instructions_file, (agent.directory, *agent.sandbox.write)
    if file is not None and agent.sandbox.kind == "bwrap" and any(paths.leads_out(file, each) for each in writable):
        raise WrongConfiguration(
            f"{agent.nick}: instructions_file: {file} is a link that leads out of a folder in which the agent can "
            "write, and could make one to any file of yours: put the file itself there, or elsewhere"
        )
    return file


def _supervisor(agent: AgentConfig, sandbox: Sandbox | None, *, runtime: Runtime) -> tuple[SupervisorBase | None, str]:
    """The agent's supervisor, or why it has none though it should; an agent never waits for it."""
    settings = agent.supervisor
    named = "agent" in settings.model_fields_set
    if settings.agent == NO_SUPERVISOR or not (named or backend(agent.agent).watched):
        return None, ""
    setup = SupervisorSetup(
        nick=agent.nick,
        directory=agent.directory,
        model=_model(settings),
        thinking=settings.thinking,
        window_size=settings.window_size,
        eval_interval=settings.eval_interval,
        escalation_threshold=settings.escalation_threshold,
        timeout=settings.timeout,
        options=_judging(agent),
        runtime=runtime,
    )
    try:
        kind = backend(settings.agent)
        setup = replace(setup, sandbox=selection.supervisors(sandbox, kind, setup.options))
        if unknown := sorted(settings.options.keys() - kind.fields):
            raise WrongConfiguration(f"supervisor.options: {kind.name} knows no {unknown[0]}")
        return supervisor_class(kind)(setup), ""  # type: ignore[call-arg]
    except (NoBackend, WrongConfiguration) as error:
        return None, str(error)


def _judging(agent: AgentConfig) -> dict[str, object]:
    """The fields of the supervisor's backend: those of an agent of the same kind, and its own."""
    settings = agent.supervisor
    shared = agent.backend_options if settings.agent == agent.agent else {}
    return {**shared, **settings.options, **({"playbook": settings.playbook} if settings.playbook else {})}


def _model(settings: SupervisorConfig) -> str | None:
    """The supervisor's model; the default one is known to the default backend alone."""
    if settings.agent == SupervisorConfig().agent or "model" in settings.model_fields_set:
        return chosen_model(settings.model)
    return None


def environment(nick: str, token: str) -> dict[str, str]:
    """What the agent's processes have beside the daemon's variables: who it is, and our interpreter first on PATH."""
    here = str(Path(sys.executable).parent)
    return {
        Environment.NICK.value: nick,
        Environment.TOKEN.value: token,
        Environment.HOME.value: str(paths.home()),
        "PATH": os.pathsep.join([here, os.environ.get("PATH", os.defpath)]),
    }


def _wiki(agent: AgentConfig) -> dict[str, str]:
    """Which wiki `culture wiki` reads and writes: that of the agent's team."""
    return {Environment.WIKI.value: str(agent.team.wiki)} if agent.team and agent.team.wiki else {}


def _signature(agent: AgentConfig) -> dict[str, str]:
    """What signs the agent's commits, where git has no identity of a person for its folder."""
    found = git_identity.stand_in(agent.directory, agent.nick, f"{agent.nick}@culture.invalid")
    if found:
        log.info("%s: git knows no name and no address here, so its commits are signed %s", agent.nick, agent.nick)
    return found


def backend_fields() -> dict[str, frozenset[str]]:
    """The fields that the installed backends add to an agent."""
    return {name: kind.fields for name, kind in installed().items()}


def _agent(config: AgentsConfig, nick: str) -> AgentConfig:
    found = config.agent(nick)
    if found is None:
        names = [agent.nick for agent in config.agents]
        near = nearest(nick, names)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(names)}" if names else "there are none"
        raise WrongConfiguration(f"{paths.agents_file()} has no agent {nick}; {hint}")
    return found


def _token(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None
