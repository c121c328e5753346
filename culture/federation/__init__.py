"""Servers as peers: links between them, and what crosses these."""
