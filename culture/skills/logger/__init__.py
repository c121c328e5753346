"""Channel logs as files that people read: one per channel and day."""

from culture.skills.logger.skill import Logger

__all__ = ["Logger"]
