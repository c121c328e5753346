"""Checks of the configuration files and of the systemd units."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from culture.cli.agents import service
from culture.cli.doctor.inventory import Inventory, display_path
from culture.cli.doctor.runner import Finding, error, hint, warning
from culture.cli.team.select_team import TEAM
from culture.config import paths
from culture.config.errors import Problem, dotted
from culture.config.peer_uid import user_name
from culture.protocol.vocabulary import Environment

_QUOTED = re.compile(r"""\s*(?:-\s+)?(?:[\w.-]+:\s+)?["'|>&*\[{]""")
_CUT_OFF = re.compile(r"""^\s*(?:-\s+)?(?P<key>[\w.-]+):\s+[^"'|>&*\[{#\s](?:(?!\s#).)*\s#[^\s#]""")
_LEADING_ZERO = re.compile(r"^\s*(?:-\s+)?(?:[\w.-]+:\s+)?(?P<number>0[0-9]+)\s*(?:#.*)?$")
_LOOK_ALIKES = {"\u00a0": "a space that is none", **dict.fromkeys("\u201c\u201d\u2018\u2019", "a typographic quote")}
_SWITCH = re.compile(r"found the text '(on|off|yes|no|y|n)'", re.IGNORECASE)

# A value in the wrong place may be a password: report the line, not the text.
_QUOTES = (
    (re.compile(r"(cannot make sense of) .*", re.DOTALL), r"\1 its value"),
    (re.compile(r"found the text (?!'(?:on|off|yes|no|y|n)').*", re.DOTALL | re.IGNORECASE), "found another text"),
    (re.compile(r"\b(alias|anchor|handle|tag) '[^']*'"), r"\1"),
)


def check_files(inventory: Inventory) -> Iterator[Finding]:
    """Report errors in culture.yaml, agents.yaml and team.yaml."""
    for problem in inventory.problems:
        yield error(_told(problem), "nothing that needs this file can start", _remedy(problem, inventory))


def _told(problem: Problem) -> str:
    text = problem.text
    for quoting, instead in _QUOTES:
        text = quoting.sub(instead, text)
    place = (
        f"{display_path(problem.file)}{f' line {problem.line}' if problem.line else ''}"
        if problem.file
        else "environment"
    )
    return ": ".join(filter(None, (place, dotted(problem.key), text)))


def _remedy(problem: Problem, inventory: Inventory) -> str:
    hint = problem.hint
    if _SWITCH.search(problem.text):
        hint = "YAML has true and false: on, off, yes and no are words to it"
    edit = f"edit {display_path(problem.file)}" if problem.file else "unset it"
    return f"{f'{hint}; ' if hint else ''}{edit}, then `culture config check`"


def check_yaml_traps(inventory: Inventory) -> Iterator[Finding]:
    """Report lines of YAML files that are read differently than they look, such as ``010``."""
    teams = sorted((inventory.home / "team").glob(f"*/{TEAM}"))
    for file in (paths.server_file(), paths.agents_file(), *teams):
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        for number, line in _lines(text):
            yield from _trap(file, number, line)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line of a YAML file that has keys or values.

    ``text``: the file's contents. Comments, empty lines and text blocks (``|``, ``>``) are left out.
    """
    depth: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        indent = len(line) - len(line.lstrip(" "))
        if depth is not None and (not line.strip() or indent > depth):
            continue
        depth = indent if re.search(r"[:-]\s+[|>][-+0-9]*\s*$", line) else None
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line


def _trap(file: Path, number: int, line: str) -> Iterator[Finding]:
    """Report what in one line of a YAML file is read differently than it looks.

    ``number``: number of the line. The line is not quoted, since it may contain a secret.
    """
    place, edit = f"{display_path(file)} line {number}", f"edit {display_path(file)} line {number}"
    cut_off = _CUT_OFF.match(line)
    if cut_off:
        yield warning(
            f"{place}: the value of {cut_off['key']} ends before the #",
            "in YAML an unquoted # behind a space begins a comment, so that the rest is lost",
            f"{edit}: put the whole value in quotes, or a space behind the # of a comment",
        )
    zero = _LEADING_ZERO.match(line)
    if zero:
        yield warning(
            f"{place}: a number that begins with 0",
            f"it is read as {int(zero['number'])}; other programs read it as octal",
            f"{edit}: remove the leading zero, or put it in quotes if it is text",
        )
    plain = line.partition(" #")[0]
    if not _QUOTED.match(plain):
        for letter in sorted(set(plain) & _LOOK_ALIKES.keys()):
            yield warning(
                f"{place}: {_LOOK_ALIKES[letter]} (U+{ord(letter):04X})",
                "it was copied from a web page or a mail, and is part of the value",
                f"{edit}: type it anew with the plain character",
            )


_LINGERING = Path("/var/lib/systemd/linger")

_PROGRAM = re.compile(r'^ExecStart=(?:"([^"]+)"|(\S+))', re.MULTILINE)

_HOME = re.compile(rf'^Environment="?{Environment.HOME}=(.*?)"?$', re.MULTILINE)

_AGENT, _TEAM = (
    re.compile(made("(.+)").replace(".service", r"\.service")) for made in (service.agent_unit, service.team_unit)
)


def check_units(inventory: Inventory) -> Iterator[Finding]:
    """Report systemd units for this home folder that are outdated or broken."""
    for is_system in (False, True):
        folder, number = service.unit_folder(is_system), 0
        for file in sorted(folder.glob("culture*.service")):
            text = _text(file)
            if service.MARK in text and _is_known(file.name) and _is_ours(text, inventory):
                number += 1
                yield from _check_unit(inventory, file, text, is_system)
        lingers = (_LINGERING / user_name(os.geteuid())).exists()
        if number and not (is_system or lingers) and _LINGERING.parent.is_dir():
            yield hint(
                "the units of this user end when you log out",
                "systemd ends what belongs to a user who is not there",
                "`loginctl enable-linger`, once",
            )


def _check_unit(inventory: Inventory, file: Path, text: str, is_system: bool) -> Iterator[Finding]:
    again = f"`culture service install {_which(file.name)}{' --system' if is_system else ''}`"
    program = _PROGRAM.search(text)
    path = Path((program[1] or program[2]).replace("%%", "%")) if program else None
    agent = _AGENT.fullmatch(file.name)
    if path is None or not path.exists():
        yield error(
            f"{display_path(file)} starts {path}, which is not there", "the environment was moved or removed", again
        )
    elif agent and inventory.settings is not None and inventory.settings.agent(agent[1]) is None:
        yield warning(
            f"{display_path(file)} is of an agent that agents.yaml does not name",
            "systemd tries to start it, in vain",
            f"`culture service uninstall {agent[1]}{' --system' if is_system else ''}`",
        )
    elif _essence(text) != _essence(_today(file.name, is_system)):
        yield hint(f"{display_path(file)} is not what would be written today", "culture was updated, or moved", again)


def _is_known(name: str) -> bool:
    return name in (service.SERVER_UNIT, service.BRIDGE_UNIT) or bool(_AGENT.fullmatch(name) or _TEAM.fullmatch(name))


def _which(name: str) -> str:
    agent, team = _AGENT.fullmatch(name), _TEAM.fullmatch(name)
    if team:
        return f"--team {team[1]}"
    return agent[1] if agent else "--bridge" if name == service.BRIDGE_UNIT else "--server"


def _today(name: str, is_system: bool) -> str:
    agent, team = _AGENT.fullmatch(name), _TEAM.fullmatch(name)
    if team:
        return service.for_team(team[1], is_system)
    if agent:
        return service.for_agent(agent[1], is_system)
    return service.for_bridge(is_system) if name == service.BRIDGE_UNIT else service.for_server(is_system)


def _essence(text: str) -> list[str]:
    """Return the lines of a systemd unit without ``Environment=``, which differs between shells."""
    return [line for line in text.splitlines() if not line.startswith("Environment=") and line.strip()]


def _is_ours(text: str, inventory: Inventory) -> bool:
    match = _HOME.search(text)
    return match is not None and Path(match[1].replace("%%", "%")) == inventory.home


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
