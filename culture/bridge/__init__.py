"""IRC as MCP tools, for programs that have no daemon of ours: five tools over the transport, and nothing else."""
