"""What processes use, as the kernel counts it."""

import os
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """The processor time that a process has used, in user and system mode."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def memory_kib(pid: int) -> dict[str, int]:
    """What a process holds (rss) and its share of it where others hold the same (pss)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    found = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:]}
    return {"rss": found["Rss"], "pss": found["Pss"]}
