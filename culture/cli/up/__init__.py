"""``culture up`` and ``culture down``: start and stop server, web page and agents together.

- command: both commands
- first_run: what is written at the first start: server name, port, account
- agents: which agents are started, and choosing a backend for a new one
- foreground: stays in the terminal until a signal comes, and restarts a server that dies
- live_view: prints what happens while it stays
- shutdown: ends everything, and looks for leftovers

The flow: command.up → first_run.write_first_config → UpRun.whole (server, web page, agents) →
foreground.stay_in_terminal → Shutdown.
"""
