"""What the agents of the mesh say of themselves, kept as facts: a skill that answers LEDGER and RECEIPT."""

from culture.skills.ledger.skill import Ledger

__all__ = ["Ledger"]
