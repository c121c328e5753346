"""TODO."""

from culture.server.skill import Skill


class History(Skill):
    """TODO."""

    name = "history"
