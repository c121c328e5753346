"""What is installed of a backend's program: its version, whether it has a login, and what to type to get it."""

import json
import logging
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from culture.config.installation import installation

log = logging.getLogger(__name__)

UNKNOWN_VERSION = "?"
"""The version of a program that is there and does not tell."""
ASKING_PATIENCE = 10.0

_VERSION = re.compile(r"\d+(?:\.\d+)+(?:[-+.]\w+)*")
_warned: set[tuple[str, str]] = set()


class Login(StrEnum):
    """Whether a program can reach its model; a key or a token itself is never looked at beyond being there."""

    READY = "ready"
    MISSING = "missing"
    UNKNOWN = "unknown"
    NOT_NEEDED = "not needed"


@dataclass(frozen=True, slots=True)
class Found:
    """One program, as `culture backends` shows it."""

    program: str
    """What runs: the name of the program or package."""
    version: str | None = None
    """None when it is not installed."""
    login: Login = Login.UNKNOWN
    how: str = ""
    """Where the login comes from, such as the name of a variable or a file; never its value."""
    remedy: str = ""
    """What to type when something is missing; empty when nothing is."""
    tried: str = ""
    """The newest version that is known to work, such as ``0.163``; one beyond is warned of once and goes on."""

    @property
    def ready(self) -> bool:
        """Whether nothing is known to be missing."""
        return self.version is not None and self.login is not Login.MISSING

    @property
    def untried(self) -> bool:
        """Whether it is newer than any that was tried; ``0.163`` stands for all of 0.163."""
        known, there = _numbers(self.tried), _numbers(self.version or "")
        return bool(known and there) and there[: len(known)] > known


def note_version(nick: str, found: Found) -> None:
    """Log the version that an agent runs with; of one that is newer than any that was tried warn, once."""
    log.info("%s: %s %s", nick, found.program, found.version or "is not installed")
    key = (found.program, found.version or "")
    if found.untried and key not in _warned:
        _warned.add(key)
        log.warning(
            "%s %s is newer than what was tried (%s); should something be odd, that may be why",
            found.program,
            found.version,
            found.tried,
        )


def located(program: str, environment: Mapping[str, str] | None = None) -> Path | None:
    """Where a program is: on the PATH of the environment, or where its name says; None when it is nowhere."""
    path = (os.environ if environment is None else environment).get("PATH", os.defpath)
    found = shutil.which(program, path=path)
    return Path(found) if found else None


def version_of(program: Path) -> str:
    """The version of a program: as the package that it came in says, and only where that is silent by starting it."""
    return _packed(program.resolve()) or _asked(program)


def package_version(name: str) -> str | None:
    """The version of an installed Python package; None when it is not."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def first_set(names: tuple[str, ...], environment: Mapping[str, str] | None = None) -> str:
    """The first of these variables that has a value; empty when none has."""
    known = os.environ if environment is None else environment
    return next((name for name in names if known.get(name)), "")


def home_of(environment: Mapping[str, str]) -> Path:
    """The folder of the user whose environment it is."""
    return Path(environment.get("HOME") or Path.home())


def shown(file: Path, environment: Mapping[str, str]) -> str:
    """The place of a file as people write it, with ``~`` for their folder."""
    return str(file).replace(str(home_of(environment)), "~", 1)


def read_mapping(file: Path, parse: Callable[[str], object]) -> dict[str, Any]:
    """What a program's file says; nothing, when it is not there or says something else."""
    try:
        said = parse(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def installing(extra: str) -> str:
    """What to type for the Python packages that a backend needs."""
    return installation().extend(extra)


def _packed(program: Path) -> str:
    """What package.json says, the nearest above the program that has a version; nothing, where npm put none."""
    for folder in program.parents if "node_modules" in program.parts else ():
        if folder.name == "node_modules":
            break
        try:
            said = json.loads((folder / "package.json").read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(said, dict) and isinstance(said.get("version"), str):
            return str(said["version"])
    return ""


def _asked(program: Path) -> str:
    try:
        answer = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=ASKING_PATIENCE, text=True
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return UNKNOWN_VERSION
    found = _VERSION.search(answer.stdout)
    return found[0] if found else UNKNOWN_VERSION


def _numbers(text: str) -> tuple[int, ...]:
    found = re.match(r"v?(\d+(?:\.\d+)*)", text)
    return tuple(int(number) for number in found[1].split(".")) if found else ()
