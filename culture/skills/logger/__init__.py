"""TODO."""

from culture.server.skill import Skill


class Logger(Skill):
    """TODO."""

    name = "logger"
