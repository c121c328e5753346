"""``culture server``, ``culture backup`` and ``culture restore``: the server as a process.

- command: `culture server start`, `stop`, `restart`, `status`, `config`
- certificate: `culture server cert`, and fingerprints
- backup: `culture backup`, `culture restore`
- serve: runs the server in this process
- background: starts the server in the background, and checks addresses
- pid_file: which process is the server of a name

The flow of `culture server start`: command.start → background.start → a new process, `culture server start
--foreground` → serve.serve → `server.ircd.IRCd`.
"""
