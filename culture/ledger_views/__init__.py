"""What the ledger of the mesh says, as values that every view shows: terminal, web page, digest."""
