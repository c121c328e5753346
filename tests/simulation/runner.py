"""Runs seeds, each in a forked child, several at a time; prints what was wrong and the line that replays it.

Each seed has a process of its own. Otherwise coroutines of programs that were killed would be collected later, and run
their ``finally`` in the middle of another seed. The children share the imported product, so a fork costs little.
"""

import gc
import importlib
import os
import pickle
import pkgutil
import select
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.simulation.invariants import Violation
from tests.simulation.universe import Outcome, Setup, Universe, run_seed

_PACKAGES = ("culture.server", "culture.federation", "culture.skills")
_MEMORY = Path("/dev/shm")


def preload(folder: Path) -> None:
    """Import what servers import, and build the models of their configuration, so that children need not."""
    for package in _PACKAGES:
        module = importlib.import_module(package)
        for found in pkgutil.walk_packages(module.__path__, f"{package}."):
            try:
                importlib.import_module(found.name)
            except ImportError:  # an extra that is not installed
                pass
    universe = Universe(0, Setup(), folder)
    universe.servers[0].config()
    universe.world.close()


def run_seeds(
    seeds: Iterable[int], setup: Any, jobs: int = 1, run: Callable[[int, Any, Path], Outcome] = run_seed
) -> Iterator[Outcome]:
    """Run these seeds, at most ``jobs`` at a time, and yield what came of each as it ends.

    ``run`` runs one seed with the setup that it needs.
    """
    with tempfile.TemporaryDirectory(prefix="culture-simulation-", dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        preload(Path(folder) / "preload")
        gc.collect()
        gc.freeze()
        waiting = iter(seeds)
        running: dict[int, tuple[int, int, bytearray]] = {}
        is_more = True
        while is_more or running:
            while is_more and len(running) < jobs:
                seed = next(waiting, None)
                if seed is None:
                    is_more = False
                else:
                    process, pipe = fork(partial(run, seed, setup, Path(folder) / str(seed)))
                    running[pipe] = (seed, process, bytearray())
            for pipe in select.select(list(running), [], [])[0] if running else []:
                data = os.read(pipe, 1 << 16)
                running[pipe][2].extend(data)
                if not data:
                    yield _end(pipe, *running.pop(pipe))


def _end(pipe: int, seed: int, process: int, data: bytearray) -> Outcome:
    os.close(pipe)
    _, status = os.waitpid(process, 0)
    if not data:
        return Outcome(seed, [Violation("simulator", f"the process ended with status {status}")], "", 0.0, 0, [])
    outcome: Outcome = pickle.loads(bytes(data))
    return outcome


def fork(run: Callable[[], Any]) -> tuple[int, int]:
    """Call a function in a child; return its pid, and the pipe through which the pickled result comes."""
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return process, reading
    try:
        os.close(reading)
        gc.disable()
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(run(), pipe)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)
