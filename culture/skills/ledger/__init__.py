"""The ledger skill: stores facts that agents publish; answers LEDGER and RECEIPT."""

from culture.skills.ledger.skill import Ledger

__all__ = ["Ledger"]
