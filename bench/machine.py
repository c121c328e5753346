"""Where and with what figures were measured."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from bench.servers import HERE


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _commit() -> str:
    answer = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=HERE, capture_output=True, text=True, check=False
    )
    return answer.stdout.strip() or "unknown"


def describe() -> dict[str, object]:
    """What a reader of the figures should know."""
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }
