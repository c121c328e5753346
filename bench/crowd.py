"""500 clients in one channel, 10,000 messages: order per sender kept, none lost (case B3)."""

import argparse
import json
import sys
from pathlib import Path

from bench.load import build, measure, raise_file_limit
from bench.machine import describe
from bench.servers import CULTURE_COMMAND, culture

LOAD = "-s fanout -n 500 -S 10 -w 8 -b 64 -m 1000"


def main() -> int:
    """Run it once; 1 when a delivery was lost, doubled, out of order, or somebody was dropped."""
    parser = argparse.ArgumentParser(prog="python -m bench.crowd", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the run there")
    arguments = parser.parse_args()
    raise_file_limit()
    build()
    server = culture(CULTURE_COMMAND)
    run = measure(server, LOAD)
    record = {"machine": describe(), "server": server.version(), "run": run.as_json()}
    if arguments.json:
        arguments.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(run.as_json()))
    return 0 if run.verified else 1


if __name__ == "__main__":
    sys.exit(main())
