"""Members of a team: hired, kept running, replaced when their context is full."""
