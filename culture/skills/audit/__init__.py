"""Who said, asked, answered, was paused and spent what, when: a skill that writes it to files which only grow."""

from culture.skills.audit.skill import Audit

__all__ = ["Audit"]
