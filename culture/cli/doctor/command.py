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
from culture.cli.doctor.inventory import Inventory
from culture.cli.doctor.runner import DoctorCheck, FindingSeverity, conduct, mended
from culture.protocol.vocabulary import Exit

CHECKS = (
    DoctorCheck("configuration.files", "the configuration files can be used", configuration.files),
    DoctorCheck("configuration.traps", "YAML reads them as they look", configuration.traps),
    DoctorCheck("configuration.trust", "it is said who may answer questions", configuration.trust),
    DoctorCheck("configuration.boundary", "no agent runs as you", configuration.boundary),
    DoctorCheck("configuration.sandboxes", "every agent can have its sandbox", configuration.sandboxes),
    DoctorCheck("files.home", "the home folder is for its owner alone", files.home),
    DoctorCheck("files.secrets", "nobody else may read a secret", files.secrets),
    DoctorCheck("files.others", "nobody else may read the rest", files.others),
    DoctorCheck("files.owners", "all of it is yours", files.owners),
    DoctorCheck("leftovers.notes", "every note of a process is of a living one", files.notes),
    DoctorCheck("leftovers.locks", "the data folders are free, or held by their servers", files.locks),
    DoctorCheck("leftovers.halves", "no file is half written", files.halves),
    DoctorCheck("ports.answering", "every server that runs answers", ports.answering),
    DoctorCheck("ports.held", "no other user has a port of ours", ports.held),
    DoctorCheck("ports.pages", "every page is connected to its server", ports.pages),
    DoctorCheck("ports.exposure", "strangers meet TLS and logins", ports.exposure),
    DoctorCheck("ports.agents", "the agents know where their server is", ports.agents),
    DoctorCheck("sockets.folder", "there is a folder for sockets", sockets.folder),
    DoctorCheck("sockets.temporary", "there is a folder for temporary files", sockets.temporary),
    DoctorCheck("sockets.lengths", "the paths of sockets are short enough", sockets.lengths),
    DoctorCheck("sockets.states", "somebody is behind every socket", sockets.states),
    DoctorCheck("versions.python", "this Python has what is needed", machine.python),
    DoctorCheck("versions.package", "nothing of another version runs", machine.package),
    DoctorCheck(
        "versions.backends", "the agents' programs are installed, in versions that were tried", machine.backends
    ),
    DoctorCheck("versions.skills", "the agents' programs have the irc skill", machine.skills),
    DoctorCheck("logins.backends", "no program of an agent lacks a login", accounts.backends),
    DoctorCheck("logins.commands", "the programs that agents.yaml names are there", accounts.commands),
    DoctorCheck("logins.accounts", "no agent is kept from logging in", accounts.accounts),
    DoctorCheck("accounts.readable", "the accounts can be read", accounts.readable),
    DoctorCheck("accounts.people", "there are no accounts without one of a person", accounts.people),
    DoctorCheck("accounts.nicks", "no agent has a person's nick", accounts.nicks),
    DoctorCheck("clocks.servers", "the clocks of servers agree with this one", machine.servers),
    DoctorCheck("clocks.past", "nothing was written in the future", machine.past),
    DoctorCheck("disk.room", "there is room", files.room),
    DoctorCheck("disk.writable", "it can be written", files.writable),
    DoctorCheck("disk.kind", "it is a disk of this machine", files.kind),
    DoctorCheck("disk.size", "the data is of a reasonable size", files.size),
    DoctorCheck("tls.dates", "no certificate has ended, or soon will", links.dates),
    DoctorCheck("tls.shown", "servers show the certificates of their files", links.shown_ones),
    DoctorCheck("tls.pins", "agents expect the server's certificate", links.pins),
    DoctorCheck("links.readable", "the links can be read", links.readable),
    DoctorCheck("links.secrets", "each link has a secret of its own", links.secrets),
    DoctorCheck("links.certificates", "the peers show the certificates that are expected", links.certificates),
    DoctorCheck("links.states", "no link is missing", links.states),
    DoctorCheck("agents.folders", "the agents' folders are there", agents.folders),
    DoctorCheck("agents.states", "the agents are well", agents.states),
    DoctorCheck("agents.openings", "no agent that never asks can be reached by strangers", agent_exposure.openings),
    DoctorCheck("agents.orphans", "no agent's process has outlived its daemon", agents.orphans),
    DoctorCheck("services.installed", "the units of systemd are up to date", sockets.installed),
    DoctorCheck("machine.descriptors", "there are enough descriptors", machine.descriptors),
    DoctorCheck("machine.kernel", "the kernel has what is needed", machine.kernel),
    DoctorCheck("databases.whole", "the databases are whole", databases.whole),
    DoctorCheck("databases.growth", "nothing grows without end", databases.growth),
    DoctorCheck("databases.before", "no restore has left its old data", databases.before),
    DoctorCheck("teams.projects", "the projects of teams are there", agents.projects),
    DoctorCheck("teams.worktrees", "every worktree belongs to a task", agents.worktrees),
    DoctorCheck("teams.wikis", "the wikis are whole", agents.wikis),
    DoctorCheck("teams.waiting", "no page waits to be written", agents.waiting),
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
    outcomes = conduct(CHECKS, Inventory())
    if fix:
        outcomes = [mended(each) for each in outcomes]
    seconds = time.monotonic() - begun
    typer.echo(as_data(outcomes, seconds) if as_json else as_text(outcomes, seconds, everything=everything))
    if worst(outcomes).weight > FindingSeverity.HINT.weight:
        raise typer.Exit(Exit.FAILED)
