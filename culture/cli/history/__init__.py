"""``culture history``: reads and prunes the history of a server, while it runs or not.

- command: `culture history search`, `stats`, `verify`, `prune`
- export: `culture history export`
- open_store: opens the history beside a running server
"""
