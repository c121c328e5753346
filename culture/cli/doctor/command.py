"""``culture doctor``."""

import time
from typing import Annotated

import typer

from culture.cli.agent_access import open_to_agents, refuse_agents
from culture.cli.doctor import (
    accounts,
    agent_exposure,
    agents,
    configuration,
    databases,
    files,
    links,
    machine,
    ports,
    sockets,
)
from culture.cli.doctor.format import as_data, as_text, worst
from culture.cli.doctor.inventory import Scene
from culture.cli.doctor.runner import Check, Severity, conduct, mended
from culture.protocol.vocabulary import Exit

CHECKS = (
    Check("configuration.files", "the configuration files can be used", configuration.files),
    Check("configuration.traps", "YAML reads them as they look", configuration.traps),
    Check("configuration.trust", "it is said who may answer questions", configuration.trust),
    Check("configuration.boundary", "no agent runs as you", configuration.boundary),
    Check("configuration.sandboxes", "every agent can have its sandbox", configuration.sandboxes),
    Check("files.home", "the home folder is for its owner alone", files.home),
    Check("files.secrets", "nobody else may read a secret", files.secrets),
    Check("files.others", "nobody else may read the rest", files.others),
    Check("files.owners", "all of it is yours", files.owners),
    Check("leftovers.notes", "every note of a process is of a living one", files.notes),
    Check("leftovers.locks", "the data folders are free, or held by their servers", files.locks),
    Check("leftovers.halves", "no file is half written", files.halves),
    Check("ports.answering", "every server that runs answers", ports.answering),
    Check("ports.held", "no other user has a port of ours", ports.held),
    Check("ports.pages", "every page is connected to its server", ports.pages),
    Check("ports.exposure", "strangers meet TLS and logins", ports.exposure),
    Check("ports.agents", "the agents know where their server is", ports.agents),
    Check("sockets.folder", "there is a folder for sockets", sockets.folder),
    Check("sockets.temporary", "there is a folder for temporary files", sockets.temporary),
    Check("sockets.lengths", "the paths of sockets are short enough", sockets.lengths),
    Check("sockets.states", "somebody is behind every socket", sockets.states),
    Check("versions.python", "this Python has what is needed", machine.python),
    Check("versions.package", "nothing of another version runs", machine.package),
    Check("versions.backends", "the agents' programs are installed, in versions that were tried", machine.backends),
    Check("versions.skills", "the agents' programs have the irc skill", machine.skills),
    Check("logins.backends", "no program of an agent lacks a login", accounts.backends),
    Check("logins.commands", "the programs that agents.yaml names are there", accounts.commands),
    Check("logins.accounts", "no agent is kept from logging in", accounts.accounts),
    Check("accounts.readable", "the accounts can be read", accounts.readable),
    Check("accounts.people", "there are no accounts without one of a person", accounts.people),
    Check("accounts.nicks", "no agent has a person's nick", accounts.nicks),
    Check("clocks.servers", "the clocks of servers agree with this one", machine.servers),
    Check("clocks.past", "nothing was written in the future", machine.past),
    Check("disk.room", "there is room", files.room),
    Check("disk.writable", "it can be written", files.writable),
    Check("disk.kind", "it is a disk of this machine", files.kind),
    Check("disk.size", "the data is of a reasonable size", files.size),
    Check("tls.dates", "no certificate has ended, or soon will", links.dates),
    Check("tls.shown", "servers show the certificates of their files", links.shown_ones),
    Check("tls.pins", "agents expect the server's certificate", links.pins),
    Check("links.readable", "the links can be read", links.readable),
    Check("links.secrets", "each link has a secret of its own", links.secrets),
    Check("links.certificates", "the peers show the certificates that are expected", links.certificates),
    Check("links.states", "no link is missing", links.states),
    Check("agents.folders", "the agents' folders are there", agents.folders),
    Check("agents.states", "the agents are well", agents.states),
    Check("agents.openings", "no agent that never asks can be reached by strangers", agent_exposure.openings),
    Check("agents.orphans", "no agent's process has outlived its daemon", agents.orphans),
    Check("services.installed", "the units of systemd are up to date", sockets.installed),
    Check("machine.descriptors", "there are enough descriptors", machine.descriptors),
    Check("machine.kernel", "the kernel has what is needed", machine.kernel),
    Check("databases.whole", "the databases are whole", databases.whole),
    Check("databases.growth", "nothing grows without end", databases.growth),
    Check("databases.before", "no restore has left its old data", databases.before),
    Check("teams.projects", "the projects of teams are there", agents.projects),
    Check("teams.worktrees", "every worktree belongs to a task", agents.worktrees),
    Check("teams.wikis", "the wikis are whole", agents.wikis),
    Check("teams.waiting", "no page waits to be written", agents.waiting),
)


@open_to_agents
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Everything that was looked at, for programs.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Show also what is well.")] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Put right what can be without loss: modes of files, what crashes left.")
    ] = False,
) -> None:
    """Look at everything that can be wrong, and say what to type.

    Nothing is changed without --fix, and no secret is shown. The exit code is 0
    when nothing is worse than a hint, else 1.
    """
    if fix:
        refuse_agents()
    begun = time.monotonic()
    outcomes = conduct(CHECKS, Scene())
    if fix:
        outcomes = [mended(each) for each in outcomes]
    seconds = time.monotonic() - begun
    typer.echo(as_data(outcomes, seconds) if as_json else as_text(outcomes, seconds, everything=everything))
    if worst(outcomes).weight > Severity.HINT.weight:
        raise typer.Exit(Exit.FAILED)
