"""The agent's command line under its first name."""

import sys

from culture.clients.shared.skill.irc_client import main

if __name__ == "__main__":
    sys.exit(main())
