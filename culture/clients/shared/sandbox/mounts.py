"""The file system inside a sandbox: the arguments of bubblewrap, in the order in which it applies them.

Later mounts hide earlier ones, so the order is the rule: the system and the programs, read-only; an empty home; the
program's state and what the owner lists; the project; last what must not be covered again, such as the hooks of the
project's git repository, which git runs outside.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.programs import home_of
from culture.clients.shared.sandbox.needs import ProgramNeeds
from culture.config import paths
from culture.lib.files import private_directory, replace_file

SYSTEM = ("/usr", "/opt", "/nix/store", "/gnu/store")
MERGED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Symlinks into /usr on today's systems."""
ETC = (
    *("alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies", "fonts"),
    *("gitconfig", "group", "host.conf", "hosts", "inputrc", "java", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"),
    *("locale.alias", "locale.conf", "localtime", "magic", "mime.types", "nsswitch.conf", "os-release", "passwd"),
    *("pki/tls/certs", "pki/ca-trust", "profile", "protocols", "services", "shells", "ssl/certs", "ssl/cert.pem"),
    *("ssl/openssl.cnf", "terminfo", "timezone", "vim"),
)
"""What programs look up in /etc; keys and password hashes are not among it."""
GIT_PATIENCE = 5.0
MOST_SUBMODULES = 100
ROOTS_OWN = ("/proc/sys", "/proc/mtrr")
GIT_RUNS = ("hooks", "config")
"""What git takes commands from, also when the owner or a team's orchestrator runs it outside."""
GIT_LEADS = ("commondir", "gitdir", "config.worktree")
"""What leads git to the hooks and settings of another folder, or has settings for one worktree."""
_AS_IF_ABSENT = {"commondir": ".\n", "config.worktree": ""}
"""Texts of these files with which git works as it does without them."""
OUR_CODE = Path(__file__).resolve().parents[3]
"""The package ``culture``, which the skill client is a part of."""
_PACKAGES = ("/site-packages", "/dist-packages")
_WIKI = re.compile(r"wiki/[^/.][^/]*(/.*)?")
_WORKTREE = re.compile(r"gitdir:\s*(?P<folder>\S.*)")
_GIT_PARTS = ("HEAD", "objects", "refs")


@dataclass(frozen=True, slots=True)
class View:
    """What one program sees."""

    name: str
    """Whose private folders it gets: the agent's nick, or another for its supervisor."""
    directory: Path
    needs: ProgramNeeds
    environment: Mapping[str, str]
    """The variables outside, which say where things are."""
    read: Sequence[Path] = ()
    write: Sequence[Path] = ()
    sockets: Sequence[Path] = ()
    """Unix sockets of the daemon, each at its own path."""
    programs: Sequence[Path] = ()
    """Files and folders that the program runs from."""

    @property
    def home(self) -> Path:
        """The owner's home, which is empty inside."""
        return home_of(self.environment)

    @property
    def private(self) -> Path:
        """The folder outside that holds this agent's state of the program."""
        return paths.home() / "sandbox" / self.name

    @property
    def writable(self) -> list[Path]:
        """The project and what the owner lists, folders before those in them: the hooks of a project stay covered.

        What is listed and in another one is there already. The agent could put a link to elsewhere in its place.
        """
        kept = [self.directory]
        for place in sorted(self.write):
            if not _is_within(place, kept):
                kept.append(place)
        return sorted(kept)

    def check(self) -> None:
        """WrongConfiguration where a listed folder would open what the sandbox closes."""
        for key, places in (("directory", [self.directory]), ("read", self.read), ("write", self.write)):
            for place in places:
                self._check(key, place)

    def _check(self, key: str, place: Path) -> None:
        real, ours = place.resolve(), paths.home().resolve()
        where = f"sandbox: {key}: {place}" if key != "directory" else f"sandbox: the directory {place}"
        if any(real == each or real in each.parents for each in (self.home.resolve(), ours)):
            raise WrongConfiguration(f"{where} holds the home folder, which a sandbox closes: name a folder in it")
        inside = real.relative_to(ours) if ours in real.parents else None
        if key != "directory" and inside is not None and not _WIKI.fullmatch(str(inside)):
            raise WrongConfiguration(f"{where} is in {ours}, which a sandbox closes")

    def arguments(self) -> list[str]:
        """bubblewrap's arguments for all of it; makes the private folders."""
        self.check()
        return [word for part in self._parts() for word in part]

    def _parts(self) -> Iterator[Sequence[str]]:
        yield from _system()
        for empty in ("/tmp", "/var/tmp", "/run"):
            yield "--tmpfs", empty
        yield "--tmpfs", str(self.home)
        for program in self.programs:
            yield _bound("--ro-bind-try", program)
        yield from self._state()
        yield from self._identity()
        for place in filter(_is_reachable, self.read):
            yield _bound("--ro-bind-try", place)
        for place in self.writable:
            if place == self.directory or _is_reachable(place):
                yield _bound("--bind" if place == self.directory else "--bind-try", place)
                yield from _git(place)
        for each in self.sockets:
            yield _bound("--bind-try", each)
        yield "--remount-ro", "/"

    def _state(self) -> Iterator[Sequence[str]]:
        """The program's own files: private folders, the owner's login in them, the owner's settings read-only."""
        for name in self.needs.folders:
            yield "--bind", str(private_directory(self._own(name))), str(self.home / name)
        for option, names in (("--bind", self.needs.logins), ("--ro-bind", self.needs.settings)):
            for name in names:
                if (source := self._outside(name)).exists():
                    self._clear_way(name)
                    yield option, str(source), str(self.home / name)
        for name in self.needs.copies:
            if (own := self._copied(name)).exists():
                yield "--bind", str(own), str(self.home / name)

    def _identity(self) -> Iterator[Sequence[str]]:
        """Who commits, as git knows it from the owner's settings; of those nothing else is shown."""
        command = ["git", "config", "--global", "--null", "--get-regexp", r"^user\.(name|email)$"]
        try:
            found = subprocess.run(
                command, cwd="/", env={**self.environment}, capture_output=True, timeout=GIT_PATIENCE
            )
        except (OSError, subprocess.TimeoutExpired):
            return
        pairs = [each.split("\n", 1) for each in found.stdout.decode(errors="replace").split("\0") if "\n" in each]
        if found.returncode == 0 and pairs:
            lines = [f'\t{key.removeprefix("user.")} = "{_escaped(value)}"' for key, value in pairs]
            file = self.private / "gitconfig"
            replace_file(file, "\n".join(["[user]", *lines, ""]))
            yield "--ro-bind", str(file), str(self.home / ".gitconfig")

    def _own(self, name: str) -> Path:
        """A place in the private folder; what the agent may have put in its way is removed, never followed."""
        self._clear_way(name)
        return self.private / name

    def _clear_way(self, name: str) -> None:
        place = private_directory(self.private)
        for part in Path(name).parts:
            place = place / part
            if place.is_symlink():
                place.unlink()

    def _outside(self, name: str) -> Path:
        """Where the owner's file is: under the home, unless a variable puts its folder elsewhere."""
        for variable, folder in self.needs.moved.items():
            if (place := self.environment.get(variable)) and f"{name}/".startswith(f"{folder}/"):
                return Path(place) / Path(name).relative_to(folder)
        return self.home / name

    def _copied(self, name: str) -> Path:
        """The agent's copy of a file, made anew when the owner's has changed since."""
        own, source = self._own(name), self._outside(name)
        moved = (Path(self.environment[each]) / name for each in self.needs.moved if self.environment.get(each))
        source = next((each for each in moved if each.is_file()), source)
        if source.is_file() and not (own.is_file() and own.stat().st_mtime >= source.stat().st_mtime):
            replace_file(own, source.read_text(encoding="utf-8"))
        return own


def program_places(
    program: Sequence[str], environment: Mapping[str, str], home: Path, writable: Sequence[Path] = ()
) -> list[Path]:
    """What of the disk a program runs from: itself, its package, our Python, and the folders of PATH.

    Nothing in a ``writable`` folder is among it. That is inside anyway, and a link there leads where the agent wants.
    """
    listed = os.pathsep.join(environment.get(name, "") for name in ("PATH", "PYTHONPATH")).split(os.pathsep)
    there = [Path(each) for each in listed if each.startswith("/") and _is_reachable(Path(each))]
    on_path = [each for each in there if not _is_within(each, writable)]
    packages = [Path(each) for each in sys.path if each.endswith(_PACKAGES)]
    ours = [Path(sys.prefix), Path(sys.base_prefix), OUR_CODE, *packages]
    found = [*on_path, *(each.resolve() for each in on_path), *ours]
    named = [shutil.which(each, path=environment.get("PATH")) for each in (program[0], "node")]
    for start in (*named, *program):
        if start is not None and os.path.isabs(start) and os.path.isfile(start):
            found += [] if _is_within(Path(start), writable) else _package_of(Path(start))
    closed = (home.resolve(), paths.home().resolve())
    return _outermost([each for each in found if not _opens(each, closed) and not _is_system(each)])


def _outermost(places: Iterable[Path]) -> list[Path]:
    """Without what is inside another one: nothing can be mounted below a read-only folder where it is not there yet."""
    kept: list[Path] = []
    for place in sorted(set(places)):
        if not any(each in place.parents for each in kept):
            kept.append(place)
    return kept


def _package_of(program: Path) -> Iterator[Path]:
    """The file, what it is a link to, and the tree that npm or a version manager has put around that."""
    real = program.resolve()
    yield program
    yield real
    parts = real.parts
    if "node_modules" in parts:
        yield Path(*parts[: parts.index("node_modules") + 1])
    elif real.parent.name == "bin":
        yield from (real.parent, real.parent.parent / "lib")


def _is_reachable(place: Path) -> bool:
    """Whether this user gets there. bubblewrap passes over what is not there, and ends at what it may not look at."""
    try:
        place.stat()
    except OSError:
        return False
    return True


def _is_within(place: Path, folders: Iterable[Path]) -> bool:
    """Whether the way to a place leads through one of the folders."""
    way = {each.resolve() for each in (place, *place.parents)}
    return any(each.resolve() in way for each in folders)


def _opens(place: Path, closed: Iterable[Path]) -> bool:
    real = place.resolve()
    return any(real == each or real in each.parents for each in closed)


def _is_system(place: Path) -> bool:
    return any(str(place) == each or str(place).startswith(f"{each}/") for each in (*SYSTEM, *MERGED))


def _system() -> Iterator[Sequence[str]]:
    for folder in SYSTEM:
        yield "--ro-bind-try", folder, folder
    for folder in MERGED:
        if os.path.islink(folder):
            yield "--symlink", os.readlink(folder), folder
        else:
            yield "--ro-bind-try", folder, folder
    for name in ETC:
        yield "--ro-bind-try", f"/etc/{name}", f"/etc/{name}"
    yield "--proc", "/proc"
    # Root in a user namespace still owns these files, and may write to them without any capability.
    for place in ROOTS_OWN:
        yield "--ro-bind-try", place, place
    yield "--dev", "/dev"


def _git(directory: Path) -> Iterator[Sequence[str]]:
    """The repository of a folder: writable, but for what git would run outside.

    Each is mounted at its own place, since what is mounted cannot be moved away and replaced.
    """
    place = directory if all((directory / each).exists() for each in _GIT_PARTS) else directory / ".git"
    if place.is_dir() and not place.is_symlink():
        yield _bound("--bind", place)
        yield from _closed_worktrees(place)
        yield from _guarded(place)
    elif place.is_file() and not place.is_symlink():
        yield _bound("--ro-bind", place)
        own = _worktree_folder(place)
        if own is not None:
            yield from _shared(own.parent.parent)
            yield _bound("--bind", own)
            yield from _guarded(own)


def _shared(common: Path) -> Iterator[Sequence[str]]:
    """The repository that worktrees share: their commits go into it, and all else of it is read-only."""
    yield _bound("--ro-bind", common)
    for name in ("objects", "refs", "logs"):
        if not (common / name).is_symlink():
            yield _bound("--bind-try", common / name)


def _closed_worktrees(repository: Path) -> Iterator[Sequence[str]]:
    """The folders of the worktrees of a repository are read-only: git takes settings by way of them."""
    worktrees = repository / "worktrees"
    if not worktrees.is_symlink():
        worktrees.mkdir(exist_ok=True)
        yield _bound("--ro-bind", worktrees)


def _guarded(folder: Path) -> Iterator[Sequence[str]]:
    """Read-only hooks and settings, those of submodules as well; where there are no hooks, none can be made."""
    repositories = _submodules(folder / "modules")
    if len(repositories) > MOST_SUBMODULES:
        yield _bound("--ro-bind", folder / "modules")
        repositories = []
    for place in (*([folder / "modules"] if repositories else []), *repositories):
        yield _bound("--bind", place)
    for repository in (folder, *repositories):
        _check_no_links(repository)
        _pin(repository)
        for name in (*GIT_RUNS, *GIT_LEADS):
            if (repository / name).exists() and not (repository / name).is_symlink():
                yield _bound("--ro-bind", repository / name)
        if (repository / GIT_RUNS[1]).exists() and not os.path.lexists(repository / GIT_RUNS[0]):
            yield "--tmpfs", str(repository / GIT_RUNS[0]), "--remount-ro", str(repository / GIT_RUNS[0])


def _submodules(modules: Path) -> list[Path]:
    """The repositories of submodules, one more than are guarded where there are too many.

    The agent can put a link in the place of a folder that is not there yet: what that leads to is none of them.
    """
    if modules.is_symlink():
        return []
    inner = (each.parent for each in modules.rglob("HEAD") if each.is_file() and (each.parent / GIT_RUNS[1]).is_file())
    return list(islice(inner, MOST_SUBMODULES + 1))


def _check_no_links(repository: Path) -> None:
    for name in GIT_RUNS:
        if (repository / name).is_symlink():
            raise WrongConfiguration(
                f"sandbox: {repository / name} is a link, in whose place an agent could put hooks or settings of its "
                "own: put the folder or file itself there, or for hooks set core.hooksPath"
            )


def _pin(repository: Path) -> None:
    """Make the files by which an agent could lead git elsewhere: only what is there can be mounted."""
    for name, text in _AS_IF_ABSENT.items():
        if not os.path.lexists(repository / name):
            (repository / name).write_text(text, encoding="ascii")


def _worktree_folder(file: Path) -> Path | None:
    """The folder of a worktree in its repository, if that agrees that it is one of its own.

    The agent can write the file that names it, but not what the repository says of its worktrees: what does not point
    back is not opened.
    """
    found = _WORKTREE.fullmatch(file.read_text(encoding="utf-8", errors="replace").strip())
    if found is None:
        return None
    own = (file.parent / found["folder"]).resolve()
    common = own.parent.parent
    try:
        points_back = (own / "gitdir").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    is_repository = own.parent.name == "worktrees" and all((common / each).exists() for each in _GIT_PARTS)
    closed = (Path.home().resolve(), paths.home().resolve())
    if not is_repository or Path(points_back).resolve() != file.resolve() or _opens(common, closed):
        return None
    return own


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", " ")


def _bound(option: str, place: Path) -> tuple[str, str, str]:
    return option, str(place), str(place)
