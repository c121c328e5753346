"""Read-only views of ledger facts, shared by terminal, web page and digest."""
