"""Documented import path of ``irc_client``, the command by which an agent uses IRC."""

import sys

from culture.clients.shared.skill.irc_client import main

if __name__ == "__main__":
    sys.exit(main())
