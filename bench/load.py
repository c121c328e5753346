"""Building and running the load generator."""

import json
import resource
import shlex
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.scenarios import Figure
from bench.servers import HERE, NotStarted, Running, Server, on_core, running

SOURCE = HERE / "ircload"
PROGRAM = SOURCE / "build" / "ircload"
TIMEOUT = 120
OPEN_FILES = 8192


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of the generator found."""

    verified: bool
    """Every delivery arrived once and in order, and nobody was dropped."""
    figures: Mapping[Figure, float]
    stalled_dropped: int
    error: str
    arguments: str

    def as_json(self) -> dict[str, object]:
        """For the record."""
        figures = {figure.value: value for figure, value in self.figures.items()}
        return {"verified": self.verified, "error": self.error, "arguments": self.arguments, **figures}


def build() -> Path:
    """Compile what changed."""
    subprocess.run(["make", "--silent", "-C", str(SOURCE)], check=True)
    return PROGRAM


def raise_file_limit() -> None:
    """Let the server and the generator, which inherit it, hold five thousand connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < OPEN_FILES:
        raise SystemExit(f"the limit of open files is {hard}: raise it to {OPEN_FILES} (ulimit -Hn)")
    if soft < OPEN_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, hard))


def measure(server: Server, arguments: str, pin: bool = False) -> Run:
    """Run the generator once against a fresh process of ``server``; ``pin`` gives each a core of its own."""
    server_core, generator_core = (0, 1) if pin else (None, None)
    try:
        with running(server, server_core) as target:
            answer = generate(server, target, arguments, generator_core)
    except (NotStarted, subprocess.TimeoutExpired) as error:
        return _failed(arguments, str(error))
    if not answer.stdout.strip():
        return _failed(arguments, answer.stderr.strip() or f"the generator ended with {answer.returncode}")
    return _read(answer, arguments)


def generate(
    server: Server, target: Running, arguments: str, core: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the generator against a running server."""
    told = f"{arguments} -c {server.concurrency} -P {target.port} -p {target.pid} -L {server.name} -T {TIMEOUT}"
    prefix = ["-x", server.nick_prefix] if server.nick_prefix else []
    # The generator gives up by itself; the margin is for one that hangs.
    command = [*on_core(core), str(PROGRAM), *shlex.split(told), *prefix]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT + 30, check=False)


def _failed(arguments: str, error: str) -> Run:
    return Run(verified=False, figures={}, stalled_dropped=0, error=error, arguments=arguments)


def _read(answer: subprocess.CompletedProcess[str], arguments: str) -> Run:
    said = json.loads(answer.stdout)
    verified = answer.returncode == 0
    return Run(
        verified=verified,
        figures={figure: float(said[figure.value]) for figure in Figure if figure.value in said},
        stalled_dropped=said.get("stalled_dropped", 0),
        error="" if verified else _fault(said),
        arguments=arguments,
    )


def _fault(said: Mapping[str, object]) -> str:
    progress = f"{said['up']} up, {said['joined']} joined, {said['deliv']} of {said['expected']} delivered"
    faults = [f"{name} {said[name]}" for name in ("dup", "gap", "bad", "dead", "errs") if said[name]]
    return ", ".join(filter(None, (progress, *faults, str(said["err"]))))


def medians(runs: Iterable[Run]) -> dict[Figure, float]:
    """The median of each figure over the runs that were verified."""
    good = [run for run in runs if run.verified]
    return {
        figure: median(run.figures[figure] for run in good)
        for figure in Figure
        if good and all(figure in run.figures for run in good)
    }
