"""What the Makefile runs: the ledger of requirements, the exported packages, the proofs."""
