"""The audit skill: an append-only log of messages, questions, answers, states and spend."""

from culture.skills.audit.skill import Audit

__all__ = ["Audit"]
