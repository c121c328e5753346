"""``python3 -m culture.clients.shared <nick>``: what `culture start` runs in the background."""

import argparse
import gc
import sys
from pathlib import Path


def main() -> int:
    """Run the daemon that the command line names."""
    gc.disable()  # hundreds of modules are loaded, and stay
    from culture.clients.shared.main import run

    gc.freeze()
    gc.enable()
    parser = argparse.ArgumentParser(prog="culture.clients.shared", description="The daemon of one agent.")
    parser.add_argument("nick", help="an agent of agents.yaml")
    parser.add_argument("--config", type=Path, metavar="FILE", help="read this file, not ~/.culture/agents.yaml")
    parser.add_argument("--at", nargs=2, metavar=("HOST", "PORT"), help="the server is here, whatever the file says")
    options = parser.parse_args()
    return run(options.nick, options.config, (options.at[0], int(options.at[1])) if options.at else None)


if __name__ == "__main__":
    sys.exit(main())
