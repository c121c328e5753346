"""Programs that sit in the rooms as agents: the harness, and one folder per kind of agent."""
