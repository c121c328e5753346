"""How this copy of culture was installed, how to upgrade it, and which packages conflict.

The name ``culture`` on the public package index belongs to another program, with the same import name and command. Ours
is distributed as ``culture-mesh``. No text of ours spells an installation command: ``Installation`` builds the one line
that is right for this copy, so that nobody installs the other program by mistake.

The metadata is read from the ``*.dist-info`` folders directly: importing ``importlib.metadata`` takes many times longer
than everything here, and the check for the other program runs with every command.
"""

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

DISTRIBUTION = "culture-mesh"
FORMER_NAME = "culture"
"""The name of our distribution up to 0.1.0; on the package index, another program's name."""

_SITE_FOLDERS = ("site-packages", "dist-packages")
_METADATA = re.compile(r"(culture(?:[-_.]mesh)?)-(\d[^-]*)(?:-py[\d.]+)?\.(?:dist|egg)-info", re.IGNORECASE)
_FORMER_VERSION = "0.1.0"
_FORMER_COMMAND = re.compile(r"^culture\s*=\s*culture\.__main__:main\s*$", re.MULTILINE)
_UV_RECEIPT = "uv-receipt.toml"
_UV_EXTRAS = re.compile(r'name = "culture-mesh"[^}]*?extras = \[([^\]]*)\]')
_PIPX_RECEIPT = "pipx_metadata.json"
_PIPX_EXTRAS = re.compile(r'"package_or_url": "[^"\n]*?\[([A-Za-z0-9_, -]*)\]')


class Installer(Enum):
    """The program that manages the environment in which a copy of culture is installed."""

    MAKE = auto()
    """The Makefile of a clone, for the ``.venv`` in it."""
    PIP = auto()
    UV = auto()
    """``uv pip``: the environment has no pip of its own."""
    UV_TOOL = auto()
    PIPX = auto()


@dataclass(frozen=True, slots=True)
class Installation:
    """An installed copy of culture; its methods return the shell commands that change it."""

    installer: Installer
    python: str
    checkout: Path | None = None
    """The source folder, if the copy is editable."""
    origin: str = ""
    """The URL it was installed from; empty for a package index."""
    extras: tuple[str, ...] = ()
    """The extras that uv tool or pipx installed; a new command has to repeat them."""

    def extend(self, *extras: str) -> str:
        """Return the shell command that adds these extras (optional features) to this copy."""
        match self.installer:
            case Installer.MAKE:
                return shlex.join(("make", "-C", str(self.checkout), *extras))
            case Installer.UV_TOOL | Installer.PIPX:
                return self._tool(tuple(sorted({*self.extras, *extras})))
            case Installer.PIP | Installer.UV if self.checkout is None:
                # Without a URL the installed copy satisfies this, and only the extra's packages are fetched.
                return self._pip(f"{DISTRIBUTION}{_marked(extras)}")
            case Installer.PIP | Installer.UV:
                return self._pip(*self._requirement(extras))

    def upgrade(self) -> str:
        """Return the shell command that upgrades this copy from where it was installed from."""
        match self.installer:
            case Installer.MAKE:
                return shlex.join(("make", "-C", str(self.checkout), "env"))
            case Installer.UV_TOOL:
                return f"uv tool upgrade {DISTRIBUTION}"
            case Installer.PIPX:
                return f"pipx upgrade {DISTRIBUTION}"
            case Installer.PIP | Installer.UV:
                return self._pip("--upgrade", *self._requirement())

    def restore(self, distribution: str) -> str:
        """Return the shell command that removes a distribution and reinstalls this copy's files.

        ``distribution``: the name of another package, whose files conflict with this copy's.
        """
        match self.installer:
            case Installer.MAKE:
                # The Makefile removes every distribution of that name before it installs.
                return shlex.join(("make", "-C", str(self.checkout), "--always-make", "env"))
            case Installer.UV_TOOL | Installer.PIPX:
                return self._tool(self.extras)
            case Installer.PIP:
                remove = shlex.join((self.python, "-m", "pip", "uninstall", "--yes", distribution))
                return f"{remove} && {self._pip('--force-reinstall', '--no-deps', *self._requirement())}"
            case Installer.UV:
                remove = shlex.join(("uv", "pip", "uninstall", "--python", self.python, distribution))
                return f"{remove} && {self._pip('--reinstall', '--no-deps', *self._requirement())}"

    def _tool(self, extras: Sequence[str]) -> str:
        program = ("uv", "tool") if self.installer is Installer.UV_TOOL else ("pipx",)
        return shlex.join((*program, "install", "--force", *self._requirement(extras)))

    def _pip(self, *words: str) -> str:
        if self.installer is Installer.UV:
            return shlex.join(("uv", "pip", "install", "--python", self.python, *words))
        return shlex.join((self.python, "-m", "pip", "install", *words))

    def _requirement(self, extras: Sequence[str] = ()) -> tuple[str, ...]:
        """Return pip's arguments that name this copy: its checkout, its URL, or its name in the index."""
        if self.checkout is not None:
            return "--editable", f"{self.checkout}{_marked(extras)}"
        return (f"{DISTRIBUTION}{_marked(extras)}{f' @ {self.origin}' if self.origin else ''}",)


@dataclass(frozen=True, slots=True)
class NameConflict:
    """Another program called ``culture`` that is installed beside this one."""

    version: str
    folder: Path
    """The site-packages folder that it is in."""

    def __str__(self) -> str:
        return (
            f"another program called {FORMER_NAME} ({FORMER_NAME} {self.version}) is installed in {self.folder}. "
            "It has the same import name and the same command as this one, so each can run files of the other. "
            f"To remove it and repair this one: {installation().restore(FORMER_NAME)}"
        )


def installation() -> Installation:
    """Return how the running copy of culture was installed."""
    return installed_in(Path(sys.prefix), _site_folders(), sys.executable, Path(__file__).parents[2])


def installed_in(prefix: Path, folders: Sequence[Path], python: str, source: Path) -> Installation:
    """Return how the copy of culture in a Python environment was installed.

    ``prefix``: folder of the environment; ``folders``: its site-packages; ``python``: its interpreter; ``source``: the
    folder that holds the package.
    """
    address, is_editable = _origin(folders)
    checkout = source if is_editable or (source / "pyproject.toml").is_file() else None
    origin = "" if checkout else address
    if (prefix / _UV_RECEIPT).is_file():
        return Installation(Installer.UV_TOOL, python, checkout, origin, _named(_UV_EXTRAS, prefix / _UV_RECEIPT))
    if (prefix / _PIPX_RECEIPT).is_file():
        return Installation(Installer.PIPX, python, checkout, origin, _named(_PIPX_EXTRAS, prefix / _PIPX_RECEIPT))
    if checkout and prefix == checkout / ".venv" and (checkout / "Makefile").is_file():
        return Installation(Installer.MAKE, python, checkout)
    has_pip = any((folder / "pip").is_dir() for folder in folders)
    return Installation(Installer.PIP if has_pip else Installer.UV, python, checkout, origin)


def installed_version() -> str | None:
    """Return the version of the installed culture.

    None if there is no metadata of an installation.
    """
    return next((version for name, version, _ in _metadata(_site_folders()) if _is_ours(name)), None)


def name_conflict(folders: Sequence[Path] | None = None) -> NameConflict | None:
    """Return the other program called ``culture`` that is installed beside this one, or None.

    ``folders``: the site-packages to search, by default those of this process.
    """
    for name, version, folder in _metadata(_site_folders() if folders is None else folders):
        if not _is_ours(name) and not _is_former(version, folder):
            return NameConflict(version, folder.parent)
    return None


def _site_folders() -> tuple[Path, ...]:
    return tuple(Path(entry) for entry in sys.path if os.path.basename(entry.rstrip("/")) in _SITE_FOLDERS)


def _metadata(folders: Sequence[Path]) -> Iterator[tuple[str, str, Path]]:
    """Yield name, version and metadata folder of each installed ``culture`` or ``culture-mesh``."""
    for folder in folders:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            if match := _METADATA.fullmatch(name):
                yield match[1].lower(), match[2], folder / name


def _is_ours(name: str) -> bool:
    return name != FORMER_NAME


def _is_former(version: str, metadata: Path) -> bool:
    """Return whether metadata are of our own distribution, from before it was renamed."""
    return version == _FORMER_VERSION and bool(_FORMER_COMMAND.search(_text(metadata / "entry_points.txt")))


def _origin(folders: Sequence[Path]) -> tuple[str, bool]:
    """Return the URL from which our distribution was installed, and whether it is editable.

    The URL is "" if it came from a package index.
    """
    for name, version, metadata in _metadata(folders):
        if _is_ours(name) or _is_former(version, metadata):
            try:
                origin = json.loads(_text(metadata / "direct_url.json") or "{}")
                return str(origin.get("url", "")), bool(origin.get("dir_info", {}).get("editable"))
            except (ValueError, AttributeError):
                break
    return "", False


def _named(extras: re.Pattern[str], receipt: Path) -> tuple[str, ...]:
    match = extras.search(_text(receipt))
    words = (each.strip(' "') for each in match[1].split(",")) if match else ()
    return tuple(sorted(word for word in words if word))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def _marked(extras: Sequence[str]) -> str:
    return f"[{','.join(extras)}]" if extras else ""
