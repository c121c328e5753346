"""What a process knows of how it was started, as JSON."""

import json
import locale
import os
import signal
import sys
from pathlib import Path
from typing import Any

from culture.config.process_owner import name_of


def reflection() -> dict[str, Any]:
    """All that a parent gives its child, and what Python makes of it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return {
        "argv": sys.argv,
        "orig_argv": sys.orig_argv,
        "path": sys.path,
        "environment": dict(os.environ),
        "cwd": os.getcwd(),
        "status": [line for line in status if line.startswith(("Umask", "SigB", "SigC", "SigI", "Threads"))],
        "signals": {
            each.name: str(signal.getsignal(each)) for each in signal.valid_signals() if each in list(signal.Signals)
        },
        "descriptors": sorted(int(each) for each in os.listdir("/proc/self/fd")),
        "group": (os.getpgrp(), os.getsid(0)),
        "name": name_of(os.getpid()),
        "flags": str(sys.flags),
        "encodings": [(each.encoding, each.errors, each.line_buffering) for each in streams],
        "locale": (locale.getlocale(), locale.getpreferredencoding()),
        "typed": sys.stdin.read(),
        "module": __name__,
        "own": os.getpid(),
    }


if __name__ == "__main__":
    print(json.dumps(reflection()))
    print("on stderr", file=sys.stderr)
    sys.exit(7)
