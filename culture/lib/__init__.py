"""Tools that every package but ``protocol`` may use.

They import nothing of ours but ``protocol``.

- ``backoff``: pauses between tries, doubling, with jitter
- ``files``: private files, atomic file replacement, file locks
- ``git``: runs git, with hooks off, a scrubbed environment, a deadline and bounded output
- ``git_identity``: the name and address that sign a commit
- ``http``: the outgoing HTTP client: a deadline, a bounded answer, and only where it may go
- ``process``: processes: held pid files, pidfds, pipes, orphans, logs
- ``ratelimit``: token buckets, sliding windows, slots
- ``secret_compare``: compares secrets in constant time
- ``ssrf_guard``: which addresses outgoing requests may call
- ``threads``: blocking work in a thread of its own
"""
