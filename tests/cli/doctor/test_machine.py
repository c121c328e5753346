"""What the kernel gives, taken away for real: limits by setrlimit, system calls by seccomp."""

import json
import os
import platform
import resource
import subprocess
import sys
from typing import Any

import pytest

from tests.cli.doctor.conftest import Patient
from tests.cli.shell import ROOT

_BEFORE = """
import ctypes, resource, struct, sys
from culture.cli import main
"""
_LIMITED = "resource.setrlimit(resource.RLIMIT_NOFILE, ({0}, {0}))"
# pidfd_open (434) is unknown, and socket (41) gives no AF_NETLINK (16): a filter of classic BPF.
_FILTERED = """
def step(code, yes, no, value): return struct.pack("=HBBI", code, yes, no, value)
steps = b"".join([
    step(0x20, 0, 0, 0), step(0x15, 3, 0, 434), step(0x15, 0, 3, 41), step(0x20, 0, 0, 16), step(0x15, 0, 1, 16),
    step(0x06, 0, 0, 0x00050000 | 38), step(0x06, 0, 0, 0x7fff0000),
])
kept = ctypes.create_string_buffer(steps, len(steps))
class Program(ctypes.Structure): _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]
program = Program(len(steps) // 8, ctypes.addressof(kept))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
"""
_AFTER = "\nsys.argv = ['culture', 'doctor', '--json']\nmain()\n"


def within(patient: Patient, limits: str) -> list[dict[str, Any]]:
    """What doctor finds about the machine in a process with such limits."""
    done = subprocess.run(
        [sys.executable, "-c", _BEFORE + limits + _AFTER],
        env={"PYTHONPATH": str(ROOT), "PATH": os.defpath, "CULTURE_HOME": str(patient.home)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    findings = json.loads(done.stdout)["findings"]
    return [each for each in findings if each["area"] == "machine" and each["severity"] != "ok"]


@pytest.mark.skipif(resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 4096, reason="this machine has too few itself")
@pytest.mark.parametrize(("most", "severity"), [(1024, "warning"), (128, "error")])
def test_too_few_descriptors(patient: Patient, most: int, severity: str) -> None:
    assert patient.found("machine.descriptors") == []
    [finding] = within(patient, _LIMITED.format(most))
    assert finding["severity"] == severity and "LimitNOFILE" in finding["next"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter has the numbers of x86-64")
def test_a_kernel_without_pidfd_and_sock_diag(patient: Patient) -> None:
    assert patient.found("machine.kernel") == []
    pidfd, diag = within(patient, _FILTERED)
    assert pidfd["severity"] == "error" and "pidfd_open" in pidfd["what"]
    assert diag["severity"] == "hint" and "sock_diag" in diag["what"]
