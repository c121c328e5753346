"""Documented import path of the daemon; ``python3 -m`` runs an agent in the foreground."""

import sys

from culture.clients.shared.daemon import AgentDaemon
from culture.clients.shared.main import main

__all__ = ["AgentDaemon", "main"]

if __name__ == "__main__":
    sys.exit(main())
