"""What clients ask to be told: MONITOR, metadata, read markers."""
