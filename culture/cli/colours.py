"""Colours: for a terminal, and for whoever has not turned them off."""

import os
import sys


def is_coloured() -> bool:
    """Whether standard output is a terminal, and NO_COLOR is not set (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
