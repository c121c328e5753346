"""The orchestrator: runs a team of agents (EM, managers, workers), each with its own daemon.

The specification calls this process the supervisor; here that word means the second model that reviews one agent.

| file | what it holds |
|---|---|
| `team.py` | `Team`: builds the objects below and runs the loops |
| `team_context.py` | what they share: configuration, store, IRC, daemons, worktrees; background jobs |
| `irc.py` | the team's IRC connection: incoming messages, notices, the read cursor |
| `inbound.py` | acts on messages: `TASK:` lines, messages for a manager, refusals |
| `heartbeat.py` | the periodic check of every member; a small model says who is idle |
| `budget.py` | watches usage, pauses members when a budget is spent |
| `reconcile.py` | after a restart: completes whatever was left half-done |
| `control.py` | requests over the team's socket (`culture team hire`, `budget`, ...) |
| `journal/` | what was intended and done, on disk; the state computed from it |
| `members/` | hiring, daemons, shift changes, recovery, usage |
| `tasks/` | the life of a task: taken, queued, worked on, ended |
| `repository/` | git: worktrees, merges, salvage of uncommitted work, locks |
| `names.py`, `prompts.py`, `wiki_record.py` | members' names; role prompts; the team's wiki pages |

The flow of a task: a person writes `TASK: ...` → `irc.py` → `inbound.py` parses it (`tasks/task_lines.py`) →
`tasks/tasks.py` makes a worktree and hires a manager (`members/hiring.py`) → the manager hires workers by `TASK:`
lines and reports → `tasks/task_end.py` checks the branch, retires the members and removes the worktree → a person
merges (`repository/merge.py`). Every step is written to the journal before and after, so that each can be repeated.
"""
