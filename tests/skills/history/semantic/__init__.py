"""The search by meaning."""
