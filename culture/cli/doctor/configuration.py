"""The configuration files: what is wrong in them, what YAML makes of them that nobody meant, what they leave open."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from culture.cli.doctor.agent_exposure import SCRIPTED, AgentExposure, knows_people, listed, workers
from culture.cli.doctor.inventory import Inventory, shown
from culture.cli.doctor.runner import Finding, error, hint, ok, warning
from culture.cli.team.select_team import TEAM
from culture.clients.shared.backends import NoBackend, backend
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.sandbox import selection
from culture.clients.shared.sandbox.bubblewrap import obstacle
from culture.config import paths
from culture.config.errors import Problem, dotted
from culture.config.sandbox import parse_host

_QUOTED = re.compile(r"""\s*(?:-\s+)?(?:[\w.-]+:\s+)?["'|>&*\[{]""")
_CUT_OFF = re.compile(r"""^\s*(?:-\s+)?(?P<key>[\w.-]+):\s+[^"'|>&*\[{#\s](?:(?!\s#).)*\s#[^\s#]""")
_LEADING_ZERO = re.compile(r"^\s*(?:-\s+)?(?:[\w.-]+:\s+)?(?P<number>0[0-9]+)\s*(?:#.*)?$")
_LOOK_ALIKES = {"\u00a0": "a space that is none", **dict.fromkeys("\u201c\u201d\u2018\u2019", "a typographic quote")}
_SWITCH = re.compile(r"found the text '(on|off|yes|no|y|n)'", re.IGNORECASE)

# What is in the wrong place, and what YAML cannot make sense of, may be a password: the line is told, not the text.
_QUOTES = (
    (re.compile(r"(cannot make sense of) .*", re.DOTALL), r"\1 its value"),
    (re.compile(r"found the text (?!'(?:on|off|yes|no|y|n)').*", re.DOTALL | re.IGNORECASE), "found another text"),
    (re.compile(r"\b(alias|anchor|handle|tag) '[^']*'"), r"\1"),
)


def files(scene: Inventory) -> Iterator[Finding]:
    """What keeps a file from being used."""
    for problem in scene.problems:
        yield error(
            _told(problem), "as long as it is so, nothing that needs this file can start", _remedy(problem, scene)
        )


def _told(problem: Problem) -> str:
    text = problem.text
    for quoting, instead in _QUOTES:
        text = quoting.sub(instead, text)
    place = f"{shown(problem.file)}{f' line {problem.line}' if problem.line else ''}" if problem.file else "environment"
    return ": ".join(filter(None, (place, dotted(problem.key), text)))


def _remedy(problem: Problem, scene: Inventory) -> str:
    hint = problem.hint
    if _SWITCH.search(problem.text):
        hint = "YAML has true and false: on, off, yes and no are words to it"
    edit = f"edit {shown(problem.file)}" if problem.file else "unset it"
    return f"{f'{hint}; ' if hint else ''}{edit}, then `culture config check`"


def traps(scene: Inventory) -> Iterator[Finding]:
    """Lines that YAML reads without complaint, and not as they look."""
    teams = sorted((scene.home / "team").glob(f"*/{TEAM}"))
    for file in (paths.server_file(), paths.agents_file(), *teams):
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        for number, line in _lines(text):
            yield from _trap(file, number, line)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines with keys and values; a block of text (``|``, ``>``) means what it says."""
    depth: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        indent = len(line) - len(line.lstrip(" "))
        if depth is not None and (not line.strip() or indent > depth):
            continue
        depth = indent if re.search(r"[:-]\s+[|>][-+0-9]*\s*$", line) else None
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line


def _trap(file: Path, number: int, line: str) -> Iterator[Finding]:
    """Never with the line itself: there may be a secret on it."""
    place, edit = f"{shown(file)} line {number}", f"edit {shown(file)} line {number}"
    found = _CUT_OFF.match(line)
    if found:
        yield warning(
            f"{place}: the value of {found['key']} ends before the #",
            "in YAML an unquoted # behind a space begins a comment, so that the rest is lost",
            f"{edit}: put the whole value in quotes, or a space behind the # of a comment",
        )
    zero = _LEADING_ZERO.match(line)
    if zero:
        yield warning(
            f"{place}: a number that begins with 0",
            f"it is read as {int(zero['number'])}; other programs read it as octal",
            f"{edit}: leave out the leading zero, or put it in quotes where it is a word",
        )
    plain = line.partition(" #")[0]
    if not _QUOTED.match(plain):
        for letter in sorted(set(plain) & _LOOK_ALIKES.keys()):
            yield warning(
                f"{place}: {_LOOK_ALIKES[letter]} (U+{ord(letter):04X})",
                "it was copied from a page or a letter, and is a part of the value",
                f"{edit}: type it anew with the plain character",
            )


def trust(scene: Inventory) -> Iterator[Finding]:
    """Who may answer the questions of agents."""
    files: dict[Path, list[AgentExposure]] = {}
    for worker in workers(scene):
        files.setdefault(worker.file, []).append(worker)
    for file, those in files.items():
        if without := [worker for worker in those if worker.trust is None]:
            yield hint(
                f"nothing is said about who may answer the questions of {listed(without)}",
                "without a trust block the first answer counts, an agent's too, and after 5 minutes there is none; "
                "only permission to use a tool is given by people alone",
                f"write `trust: {{humans: always, agents: never}}` into {shown(file)}",
            )
        shells = [each for each in those if each.backend != SCRIPTED and each.sandbox.kind != "bwrap"]
        server = scene.server_at(those[0].server)
        if shells and server is not None and not knows_people(scene, server):
            yield hint(
                f"no person has an account on {server.config.name}",
                f"whoever comes from this machine without a login counts as a person, the shells of {listed(shells)} "
                "too: an agent could answer its own questions, and release what is held",
                "`culture account add NAME` for yourself (`culture up` does it, too)",
            )


def boundary(scene: Inventory) -> Iterator[Finding]:
    """What each agent with a model could reach: without a sandbox, all that the user can whom it runs as."""
    for worker in workers(scene):
        if worker.backend == SCRIPTED or worker.user is not None:
            continue
        several = worker.is_several
        runs, reaches, asks, it = ("run", "reach", "ask", "they") if several else ("runs", "reaches", "asks", "it")
        if worker.sandbox.kind == "bwrap":
            yield ok(f"{worker.name} {reaches} {_reach_inside(worker)}")
            continue
        how = f"never {asks} for permission" if worker.never_asks else f"{asks} for permission, and people may give it"
        place = f"in {shown(worker.file)}"
        yield hint(
            f"{worker.name} {runs} as you and {how}",
            f"{it} could reach {_reach(scene, worker)}",
            f"{_way_to_a_sandbox()}{f' {place}' if several else f', or `user: NAME`, under the agent {place}'}",
        )


def sandboxes(scene: Inventory) -> Iterator[Finding]:
    """Whether every agent can have the sandbox that it is to have: without it, it does not start."""
    for agent in scene.agents:
        try:
            selection.check(agent, backend(agent.agent))
        except NoBackend:
            continue  # told by the check of the programs
        except WrongConfiguration as wrong:
            yield error(
                str(wrong),
                f"{agent.nick} does not start, rather than run without a sandbox",
                f"put that right, or correct `sandbox:` in {shown(paths.agents_file())}",
            )
    for team in scene.teams:
        why = obstacle() if team.sandbox.kind == "bwrap" else ""
        if team.sandbox.kind == "user":
            why = "members of a team run as its own user: run the whole team as another one"
        if why:
            yield error(
                f"the team {team.slug}: sandbox: {team.sandbox.kind}: {why}",
                "its members do not start, rather than run without a sandbox",
                f"put that right, or correct `sandbox:` in {shown(paths.team_dir(team.slug) / TEAM)}",
            )


def _reach(scene: Inventory, worker: AgentExposure) -> str:
    """What a process of this user can reach, as far as it is there."""
    secrets = [shown(each) for each in (Path.home() / ".ssh", scene.home) if each.exists()]
    port = f"the IRC server at {worker.server.host}:{worker.server.port}"
    return f"your home{f' with {_listed(secrets)}' if secrets else ''}, {port}, your processes and every network"


def _reach_inside(worker: AgentExposure) -> str:
    """What a sandbox opens: the listed places, and the hosts of its model and of the configuration."""
    places = [worker.directory, *worker.sandbox.read, *worker.sandbox.write]
    rules: list[str] = []
    if worker.sandbox.network == "on":
        with suppress(NoBackend):
            needs = selection.needs_of(backend(worker.backend), worker.options)
            rules = [str(rule) for rule in (*worker.sandbox.rules, *map(parse_host, needs.hosts))]
    return f"{_listed([shown(each) for each in places])} and {_listed(rules) or 'no network'}"


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words)


def _way_to_a_sandbox() -> str:
    why = obstacle()
    return f"`sandbox: bwrap` ({why})" if why else "`sandbox: bwrap`"
