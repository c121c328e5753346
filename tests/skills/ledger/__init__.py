"""The ledger's tests."""
