"""The command ``culture doctor``: the table of checks, and the output."""

import textwrap
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Annotated, Any

import typer

from culture.cli import output
from culture.cli.agent_access import open_to_agents, refuse_agents
from culture.cli.doctor import agents, configuration, databases, exposure, files, machine, network
from culture.cli.doctor.inventory import Inventory
from culture.cli.doctor.runner import CheckOutcome, DoctorCheck, Finding, FindingSeverity, repair, run_checks
from culture.cli.humanize import counted
from culture.cli.output import is_coloured
from culture.protocol.vocabulary import Exit

CHECKS = (
    DoctorCheck("configuration.files", "the configuration files can be used", configuration.check_files),
    DoctorCheck("configuration.traps", "YAML reads the files as they look", configuration.check_yaml_traps),
    DoctorCheck("configuration.trust", "a `trust:` block says who may answer questions", exposure.check_trust),
    DoctorCheck("configuration.boundary", "no agent can reach everything that you can", exposure.check_boundary),
    DoctorCheck("configuration.sandboxes", "every agent can have its sandbox", exposure.check_sandboxes),
    DoctorCheck("files.home", "the home folder is for its owner alone", files.check_home),
    DoctorCheck("files.secrets", "nobody else may read a secret", files.check_secrets),
    DoctorCheck("files.others", "nobody else may read the rest", files.check_others),
    DoctorCheck("files.owners", "all of it is yours", files.check_owners),
    DoctorCheck("leftovers.notes", "every pid file belongs to a running process", files.check_notes),
    DoctorCheck("leftovers.locks", "the data folders are unlocked, or locked by their servers", files.check_locks),
    DoctorCheck("leftovers.halves", "no file is half written", files.check_half_written),
    DoctorCheck("ports.answering", "every running server answers", network.check_answering),
    DoctorCheck("ports.held", "no other user has a port of ours", network.check_held_ports),
    DoctorCheck("ports.pages", "every page is connected to its server", network.check_pages),
    DoctorCheck("ports.exposure", "servers that others can reach use TLS and logins", network.check_exposure),
    DoctorCheck("ports.agents", "the agents know where their server is", network.check_agents_address),
    DoctorCheck("sockets.folder", "there is a folder for sockets", machine.check_socket_folder),
    DoctorCheck("sockets.temporary", "there is a folder for temporary files", machine.check_temporary_folder),
    DoctorCheck("sockets.lengths", "the paths of sockets are short enough", machine.check_socket_lengths),
    DoctorCheck("sockets.states", "every socket belongs to a running daemon", machine.check_sockets),
    DoctorCheck("versions.python", "this Python can run culture", machine.check_python),
    DoctorCheck("versions.package", "everything that runs has the installed version", machine.check_package),
    DoctorCheck(
        "versions.backends", "the agents' programs are installed, in versions that were tried", machine.check_programs
    ),
    DoctorCheck("versions.skills", "the agents' programs have the IRC instructions", machine.check_skills),
    DoctorCheck("logins.backends", "the agents' programs are logged in", agents.check_program_logins),
    DoctorCheck("logins.commands", "the programs that agents.yaml names are there", agents.check_agent_commands),
    DoctorCheck("logins.accounts", "every agent can log in", agents.check_agent_accounts),
    DoctorCheck("accounts.readable", "the accounts can be read", agents.check_accounts_file),
    DoctorCheck("accounts.people", "if there are accounts, a person has one", agents.check_people),
    DoctorCheck("accounts.nicks", "no agent has a person's nick", agents.check_nicks),
    DoctorCheck("clocks.servers", "the clocks of servers agree with this one", machine.check_server_clocks),
    DoctorCheck("clocks.past", "nothing was written in the future", machine.check_file_times),
    DoctorCheck("disk.room", "there is enough disk space", files.check_room),
    DoctorCheck("disk.writable", "the data folders can be written", files.check_writable),
    DoctorCheck("disk.kind", "the data is on a local disk", files.check_disk_kind),
    DoctorCheck("disk.size", "the data is of a reasonable size", files.check_size),
    DoctorCheck("tls.dates", "no certificate has expired, or soon will", network.check_certificate_dates),
    DoctorCheck("tls.shown", "servers use the certificates of their files", network.check_shown_certificates),
    DoctorCheck("tls.pins", "agents expect the server's certificate", network.check_pinned_fingerprints),
    DoctorCheck("links.readable", "the links can be read", network.check_link_file),
    DoctorCheck("links.secrets", "each link has a secret of its own", network.check_link_secrets),
    DoctorCheck(
        "links.certificates", "the peers show the certificates that are expected", network.check_peer_certificates
    ),
    DoctorCheck("links.states", "all links are up", network.check_link_states),
    DoctorCheck("agents.folders", "the agents' folders are there", agents.check_folders),
    DoctorCheck("agents.states", "no agent has crashed or hangs", agents.check_states),
    DoctorCheck("agents.openings", "no agent that never asks can be reached by strangers", exposure.check_openings),
    DoctorCheck("agents.orphans", "no agent's process has outlived its daemon", agents.check_orphans),
    DoctorCheck("services.installed", "the units of systemd are up to date", configuration.check_units),
    DoctorCheck("machine.descriptors", "there are enough descriptors", machine.check_descriptors),
    DoctorCheck("machine.kernel", "the kernel has the needed features", machine.check_kernel),
    DoctorCheck("databases.whole", "the databases are intact", databases.check_whole),
    DoctorCheck("databases.growth", "no file has grown very large", databases.check_growth),
    DoctorCheck("databases.before", "no restore has left its old data", databases.check_restore_leftovers),
    DoctorCheck("teams.projects", "the projects of teams are there", agents.check_projects),
    DoctorCheck("teams.worktrees", "every worktree belongs to a task", agents.check_worktrees),
    DoctorCheck("teams.wikis", "the wikis are intact", agents.check_wikis),
    DoctorCheck("teams.waiting", "no page waits to be written", agents.check_wiki_queues),
)


@open_to_agents
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print all results as JSON.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Also show checks that found nothing.")] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Repair what is safe to repair: file modes, leftovers of crashes.")
    ] = False,
) -> None:
    """Check everything that can be wrong, and say what to type.

    Nothing is changed without --fix, and no secret is shown. The exit code is 0 when there is nothing worse than a
    hint, else 1.
    """
    if fix:
        refuse_agents()
    begun = time.monotonic()
    outcomes = run_checks(CHECKS, Inventory())
    if fix:
        outcomes = [repair(each) for each in outcomes]
    seconds = time.monotonic() - begun
    typer.echo(as_data(outcomes, seconds) if as_json else as_text(outcomes, seconds, everything=everything))
    if worst(outcomes).weight > FindingSeverity.HINT.weight:
        raise typer.Exit(Exit.FAILED)


_COLOURS = {
    FindingSeverity.OK: typer.colors.GREEN,
    FindingSeverity.HINT: typer.colors.CYAN,
    FindingSeverity.WARNING: typer.colors.YELLOW,
    FindingSeverity.ERROR: typer.colors.RED,
}
_WIDTH = 100
_MARGIN = " " * 11


def as_text(outcomes: Sequence[CheckOutcome], seconds: float, *, everything: bool = False) -> str:
    """Return the outcomes of checks as text: findings by area, areas without any, and a summary.

    ``seconds``: how long the checks took. ``everything``: name every check without findings, not only the areas.
    """
    lines: list[str] = []
    for area, group in groupby(outcomes, key=lambda each: each.check.area):
        findings = list(_worth_showing(group, everything))
        if findings:
            lines += ["", typer.style(area, bold=True) if is_coloured() else area]
            lines += [line for each in findings for line in _finding_lines(each)]
    well = [] if everything else _well(outcomes)
    if well:
        lines += ["", *_wrapped(f"no findings: {', '.join(well)}", "")]
    lines += ["", f"{counted(len(outcomes), 'check', 'checks')} in {seconds:.1f} s: {_summary(outcomes)}."]
    return "\n".join(lines[1:])


def as_data(outcomes: Sequence[CheckOutcome], seconds: float) -> str:
    """Return the outcomes of checks as JSON; ``seconds``: how long the checks took."""
    findings = [_finding_data(outcome, each) for outcome in outcomes for each in outcome.findings]
    return output.as_json({"worst": worst(outcomes).value, "seconds": round(seconds, 3), "findings": findings})


def worst(outcomes: Sequence[CheckOutcome]) -> FindingSeverity:
    """Return the worst severity among the findings of all checks."""
    return max((each.worst for each in outcomes), key=lambda each: each.weight, default=FindingSeverity.OK)


def _worth_showing(group: Iterator[CheckOutcome], everything: bool) -> Iterator[Finding]:
    for outcome in group:
        for each in outcome.findings:
            if everything or each.severity is not FindingSeverity.OK or each.what.startswith("fixed"):
                yield each


def _well(outcomes: Sequence[CheckOutcome]) -> list[str]:
    areas = {each.check.area: FindingSeverity.OK for each in outcomes}
    for each in outcomes:
        areas[each.check.area] = max(areas[each.check.area], each.worst, key=lambda one: one.weight)
    return [area for area, severity in areas.items() if severity is FindingSeverity.OK]


def _finding_lines(finding: Finding) -> Iterator[str]:
    label = f"{finding.severity.value:<7}"
    first, *rest = _wrapped(output.clean(finding.what))
    heading = typer.style(label, fg=_COLOURS[finding.severity], bold=True) if is_coloured() else label
    yield f"  {heading}  {first.lstrip()}"
    yield from rest
    if finding.why:
        yield from _wrapped(output.clean(f"{finding.why}."))
    if finding.next:
        # Not wrapped, so that it can be copied.
        yield f"{_MARGIN}-> {output.clean(finding.next)}"


def _wrapped(text: str, margin: str = _MARGIN) -> list[str]:
    plain = " ".join(text.split())
    lines = textwrap.wrap(
        plain, _WIDTH, initial_indent=margin, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False
    )
    return lines or [""]


def _summary(outcomes: Sequence[CheckOutcome]) -> str:
    counts = Counter(each.severity for outcome in outcomes for each in outcome.findings)
    bad = [
        severity for severity in reversed(FindingSeverity) if severity is not FindingSeverity.OK and counts[severity]
    ]
    return ", ".join(counted(counts[each], each.value, f"{each.value}s") for each in bad) or "all is well"


def _finding_data(outcome: CheckOutcome, finding: Finding) -> dict[str, Any]:
    return {
        "check": outcome.check.name,
        "area": outcome.check.area,
        "severity": finding.severity.value,
        "what": finding.what,
        "why": finding.why,
        "next": finding.next,
        "fixable": finding.mend is not None,
    }
