"""``culture up`` and ``culture down``: start and stop server, web page and agents together.

- command: both commands
- first_run: what is written at the first start: server name, port, account
- agents: which agents are started, and choosing a backend for a new one
- wait: stays in the terminal until a signal comes
- live_view: prints what happens while it stays
- server_restart: restarts a server that dies
- shutdown: ends everything, and looks for leftovers

The flow: command.up → first_run.write_first_config → UpRun.whole (server, web page, agents) → wait.stay_in_terminal →
Shutdown.
"""
