"""``culture server``, ``culture backup`` and ``culture restore``: the server as a process.

- command: `culture server start`, `stop`, `restart`, `status`, `config`
- certificate: `culture server cert`, and fingerprints
- backup: `culture backup`, `culture restore`
- serve: runs the server in this process
- background: starts a background process and waits until it is ready
- pid_file: which process is the server of a name
- log_rotation: the log file of a background process

The flow of `culture server start`: command.start → background.start → a new process, `culture server start
--foreground` → serve.serve → `server.ircd.IRCd`.
"""
