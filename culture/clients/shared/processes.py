"""Forwards to ``culture.lib.process``, for backends that were written when these functions were here."""

from culture.lib.process.orphans import carrying, end_all, new_token, tokened
from culture.lib.process.pipes import ended, release, spawn

__all__ = ["carrying", "end_all", "ended", "new_token", "release", "spawn", "tokened"]
