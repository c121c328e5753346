"""``culture server``, ``backup`` and ``restore``: the server's process, its certificate and its data."""
