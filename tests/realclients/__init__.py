"""People's own clients, run for real against a real server."""
