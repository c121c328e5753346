"""``culture up`` and ``culture down``: everything on this machine, started and stopped together."""
