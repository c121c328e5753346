"""Serving MCP tools and web pages over HTTP: admission checks, HTTP server, stdio."""
