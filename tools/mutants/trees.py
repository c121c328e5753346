"""Copies of the repository, each with an environment of its own, and the sandbox in which their tests run."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tools.rows import ROOT

TREES = ROOT / "build" / "mutants"
_STARTER = "import culture_recorder; culture_recorder.begin()"


class Tree:
    """A copy of the committed repository under build/mutants, with an environment that imports it."""

    def __init__(self, name: str) -> None:
        self.root = TREES / name
        self.environment = self.root / ".venv"

    @property
    def recording(self) -> Path:
        """Return the folder with the recorder's notes."""
        return self.environment / "recording"

    def make(self, *, recorded: bool = False) -> None:
        """Copy HEAD, and make an environment with the installed packages of this one.

        ``recorded``: its interpreters begin with the recorder.
        """
        shutil.rmtree(self.root, ignore_errors=True)
        subprocess.run(
            ["git", "clone", "--quiet", "--local", "--no-hardlinks", str(ROOT), str(self.root)],
            check=True,
        )
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.environment)], check=True)
        ours = Path(sys.prefix)
        packages = Path(sysconfig.get_path("purelib", vars={"base": str(self.environment)}))
        starter = f"{_STARTER}\n" if recorded else ""
        (packages / "tree.pth").write_text(f"{self.root}\n{Path(pytest.__file__).parent.parent}\n{starter}")
        for source in sorted((ours / "bin").iterdir()):
            target = self.environment / "bin" / source.name
            if not target.exists() and source.is_file() and source.open("rb").read(2) == b"#!":
                target.write_text(source.read_text().replace(str(ours), str(self.environment), 1))
                target.chmod(0o755)
        if (ours / "agents").exists():
            (self.environment / "agents").symlink_to((ours / "agents").resolve())
        for mark in (".made-run", ".made-dev"):
            (self.environment / mark).touch()
        if recorded:
            shutil.copy(ROOT / "tools" / "mutants" / "recorder.py", packages / "culture_recorder.py")
            self.recording.mkdir()
            (self.recording / "root").write_text(str(self.root))

    def pytest(self, *arguments: str, timeout: float) -> tuple[int | None, str]:
        """Run pytest in the sandbox; return its exit code, None after ``timeout`` seconds, and its output."""
        scratch = self.root / "build" / "tmp"
        shutil.rmtree(scratch, ignore_errors=True)
        (scratch / "home").mkdir(parents=True)
        command = [*self._sandbox(scratch), str(self.environment / "bin" / "python"), "-m", "pytest", *arguments]
        environment = {"PATH": os.environ["PATH"], "HOME": str(scratch / "home"), "TZ": "Pacific/Chatham"}
        with subprocess.Popen(
            command,
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                process.kill()  # bubblewrap takes all processes of the sandbox with it
                output, _ = process.communicate()
                return None, output
        return process.returncode, output

    def _sandbox(self, scratch: Path) -> list[str]:
        """Return the words of bubblewrap: only this tree is writable, no network but loopback, no other process."""
        return [
            "bwrap",
            *("--ro-bind", "/", "/"),
            *("--dev", "/dev", "--proc", "/proc"),
            *("--bind", str(scratch), "/tmp", "--tmpfs", "/dev/shm", "--tmpfs", "/run"),
            *("--bind", str(self.root), str(self.root)),
            *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent"),
            "--",
        ]
