"""Commands for agents: start and stop them, look at them, talk to them.

- agents: `culture agents` (entries of agents.yaml) and `culture backends`
- lifecycle: `culture start`, `stop`, `restart`, `pause`, `resume`
- status: `culture status` and `culture logs`
- talk: `culture say`, `read`, `ask`, `who`
- questions: `culture questions`, `culture answer`
- trace: `culture trace`
- service: `culture service` (systemd units)
- agent_login: an agent's account and token
- agent_report: the facts of one agent, running or not
- agents_yaml: edits agents.yaml
- daemon_launch: starts a daemon process and waits until it is ready
- irc_session: a short IRC connection as the person who types
- select_agents: turns NICK arguments into agents
- sudo: runs commands as another user, for agents with `user:`

The flow of `culture start claude`: lifecycle.start → select_agents.select_agents → agent_login.prepare_login →
daemon_launch.start → the daemon (`clients/shared`).
"""
