"""Keeps every message of every channel, and shows it to who may read it."""

from culture.skills.history.skill import History

__all__ = ["History"]
