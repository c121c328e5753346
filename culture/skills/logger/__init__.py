"""The logger skill: readable channel logs, one file per channel and day, optionally in git."""

from culture.skills.logger.skill import Logger

__all__ = ["Logger"]
