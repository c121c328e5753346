"""The way in for programs that use tools of ours by MCP: who is let through, and what serves them."""
