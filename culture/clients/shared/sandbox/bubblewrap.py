"""Starts programs inside bubblewrap: the command that does it, and whether this machine can."""

import fnmatch
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.programs import home_of
from culture.clients.shared.sandbox import forwarder
from culture.clients.shared.sandbox.mounts import View, program_places
from culture.clients.shared.sandbox.needs import ProgramNeeds
from culture.config import paths
from culture.config.sandbox import HostRule, SandboxConfig, parse_host
from culture.lib.files import replace_file
from culture.protocol.vocabulary import Environment

PROGRAM = "bwrap"
INSTALL = "install bubblewrap (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap)"
TRIAL_PATIENCE = 10.0
NAMESPACES = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--unshare-net"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
)
LET_IN = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLORTERM", "NO_COLOR"),
    *(*Environment, "XDG_RUNTIME_DIR", "GIT_AUTHOR_*", "GIT_COMMITTER_*", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("NODE_EXTRA_CA_CERTS", "PYTHONPATH", "VIRTUAL_ENV"),
)
"""The variables that every program gets, where they are set; patterns."""
_LOOPBACK = ("localhost", "::1")
# bubblewrap itself does not carry the token, so that the agent's processes end before it does.
_LAUNCH = f'export {forwarder.HELD_TOKEN}="${Environment.TOKEN.value}"; exec env -u {Environment.TOKEN.value} "$@"'
_SWITCHES = (
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
    ("/proc/sys/user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=10000"),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "give bwrap an AppArmor profile with `userns,`, or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)
"""What keeps ordinary users from making namespaces: the file, its value then, and the remedy."""


@cache
def obstacle() -> str:
    """Why no sandbox can be made on this machine, with what to do; empty when one can. It is tried once."""
    if sys.platform != "linux":
        return "bubblewrap is for Linux: use `sandbox: user` or none here"
    program = shutil.which(PROGRAM)
    if program is None:
        return f"bubblewrap is not installed: {INSTALL}"
    view = ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    trial = [program, *NAMESPACES, *view, "--", "/bin/sh", "-c", ":"]
    try:
        done = subprocess.run(
            trial, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TRIAL_PATIENCE, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not run: {error}"
    if done.returncode == 0:
        return ""
    remedies = [remedy for file, value, remedy in _SWITCHES if _says(file, value)]
    hint = remedies[0] if remedies else "in a container, allow user namespaces and mounting /proc, or set sandbox: none"
    return f"bubblewrap cannot make a sandbox here ({done.stderr.strip().splitlines()[-1:] or done.returncode}): {hint}"


def _says(file: str, value: str) -> bool:
    try:
        return Path(file).read_text(encoding="ascii").strip() == value
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The sandbox of one program: an agent's, or that of its supervisor."""

    nick: str
    directory: Path
    config: SandboxConfig
    needs: ProgramNeeds = field(default_factory=ProgramNeeds)
    gate: Path | None = None
    """The socket of the daemon's network gate; None without network."""
    role: str = ""
    """Which program of the agent it is; empty for the agent itself, which alone reaches the daemon's socket."""

    @property
    def _name(self) -> str:
        return f"{self.nick}.{self.role}" if self.role else self.nick

    @property
    def rules(self) -> tuple[HostRule, ...]:
        """The hosts it reaches."""
        return (*self.config.rules, *map(parse_host, self.needs.hosts))

    def check(self) -> None:
        """WrongConfiguration when it cannot be had, or would not close what it is for."""
        if why := obstacle():
            raise WrongConfiguration(f"{self.nick}: sandbox: bwrap: {why}")
        try:
            self._view(["/bin/sh"], os.environ).check()
        except WrongConfiguration as wrong:
            raise WrongConfiguration(f"{self.nick}: {wrong}") from None

    def command(self, program: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """The command that runs the program inside; ``environment`` is what it is started with, beside our own."""
        everything = {**os.environ, **environment}
        removed = [word for name in sorted(self._removed(everything)) for word in ("-u", name)]
        wrapped = [PROGRAM, *NAMESPACES, *self._view(program, everything).arguments(), *self._set()]
        start = [sys.executable, "-I", "-S", forwarder.__file__, str(self.gate or ""), self._opened(), "--", *program]
        return ["/bin/sh", "-c", _LAUNCH, "sh", *removed, *wrapped, "--chdir", str(self.directory), "--", *start]

    def launcher(self, program: Path, environment: Mapping[str, str]) -> Path:
        """A file that runs the program inside, for a library that takes the path of a program and no more."""
        file = paths.home() / "sandbox" / f"{self._name}.launch"
        text = f'#!/bin/sh\nexec {shlex.join(self.command([str(program)], environment))} "$@"\n'
        replace_file(file, text, mode=0o700)
        return file

    def _view(self, program: Sequence[str], environment: Mapping[str, str]) -> View:
        sockets = [] if self.role else [paths.agent_socket(self.nick)]
        return View(
            name=self._name,
            directory=self.directory,
            needs=self.needs,
            environment=environment,
            read=self.config.read,
            write=self.config.write,
            sockets=[*sockets, *([self.gate] if self.gate else [])],
            programs=program_places(program, environment, home_of(environment), [self.directory, *self.config.write]),
        )

    def _removed(self, environment: Iterable[str]) -> set[str]:
        known = (*LET_IN, *self.needs.variables, *self.config.variables)
        let_in = {name for name in environment if any(fnmatch.fnmatchcase(name, each) for each in known)}
        return set(environment) - (let_in - self.needs.moved.keys())

    def _set(self) -> list[str]:
        return [word for name, value in self.needs.set.items() for word in ("--setenv", name, value)]

    def _opened(self) -> str:
        """The ports of this machine's loopback that the owner opened."""
        near = (each for each in self.rules if each.host in _LOOPBACK or each.host.startswith("127."))
        return ",".join(map(str, near))


def inside(sandbox: Sandbox | None, program: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The command of a program, in its sandbox where it has one."""
    return list(program) if sandbox is None else sandbox.command(program, environment)
