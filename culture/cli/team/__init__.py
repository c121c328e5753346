"""``culture team``: an engineering manager (EM), managers and workers on one project.

- command: the group; `culture team status`, `task`, `hire`, `retire`, `budget`
- init: `culture team init`, `culture team logins`
- up: `culture team up`, `culture team down`
- merge: `culture team diff`, `merge`, `rescue`
- factory: builds the orchestrator's parts from team.yaml
- select_team: which team is meant, and requests to its orchestrator

The flow of `culture team up`: up.up → factory.assemble → `orchestrator.team.Team.running`; other commands ask that
process through its socket (select_team.ask_orchestrator), or read its journal.
"""
