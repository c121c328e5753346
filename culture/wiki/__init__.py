"""The durable record of a team: pages of Markdown under git, for agents by MCP and for people by commands."""
