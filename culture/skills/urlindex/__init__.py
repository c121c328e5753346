"""TODO."""

from culture.server.skill import Skill


class UrlIndex(Skill):
    """TODO."""

    name = "urlindex"
