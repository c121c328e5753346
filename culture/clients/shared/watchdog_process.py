"""Ends an agent's processes once their daemon is gone; run by path as a process of its own, without our packages.

Standard input is a pipe to which the daemon alone writes: lines of a word and the token of the processes it means, and
``stopped`` where the daemon ends in order. The pipe's end without that word is the death of the daemon.
"""

import os
import signal
import sys
import time

STOPPED = "stopped"
"""The daemon has ended its agent by itself."""
GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL."""
FORCE = 10.0
_STEP = 0.05
_CLEAN_LOOKS = 2  # a process that is becoming another program shows no environment for a moment
_VARIABLE = b"CULTURE_TOKEN="


def main() -> None:
    """Wait for the end of standard input."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    tokens: dict[str, str] = {}
    for line in sys.stdin:
        what, _, token = line.strip().partition(" ")
        if what == STOPPED:
            return
        tokens[what] = token
    end(set(tokens.values()))


def end(tokens: set[str]) -> None:
    """End every process that was started with one of these tokens, by force after the grace."""
    marks, begun, clean = {_VARIABLE + token.encode() for token in tokens}, time.monotonic(), 0
    while clean < _CLEAN_LOOKS and (passed := time.monotonic() - begun) < GRACE + FORCE:
        number = signal.SIGTERM if passed < GRACE else signal.SIGKILL
        found = [pid for pid in os.listdir("/proc") if pid.isdecimal() and _end(int(pid), marks, number)]
        clean = 0 if found else clean + 1
        time.sleep(_STEP)


def _end(pid: int, marks: set[bytes], number: signal.Signals) -> bool:
    """Signal a process that has one of these marks; whether it has one."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        # The handle first: a number may have moved on to another process by the time it is signalled.
        with open(f"/proc/{pid}/environ", "rb") as environment:
            is_marked = not marks.isdisjoint(environment.read().split(b"\0"))
        if is_marked:
            signal.pidfd_send_signal(handle, number)
        return is_marked
    except OSError:
        return False
    finally:
        os.close(handle)


if __name__ == "__main__":
    main()
