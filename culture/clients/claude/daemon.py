"""The daemon under the name that the founding documents give it; ``python3 -m`` runs one agent in the foreground."""

import sys

from culture.clients.shared.daemon import AgentDaemon
from culture.clients.shared.main import main

__all__ = ["AgentDaemon", "main"]

if __name__ == "__main__":
    sys.exit(main())
