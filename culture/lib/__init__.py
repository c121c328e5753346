"""Tools that every package but ``protocol`` may use; they import nothing of ours but ``protocol``.

- ``files``: private files, atomic file replacement, file locks
- ``git``: runs git, with hooks off, a scrubbed environment, a deadline and bounded output
- ``git_identity``: the name and address that sign a commit
- ``process``: processes: held pid files, pidfds, pipes, orphans, logs
- ``threads``: blocking work in a thread of its own
"""
