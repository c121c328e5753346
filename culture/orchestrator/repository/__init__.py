"""Git for a team: worktrees, merges, rescue refs, and locks."""
