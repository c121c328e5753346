"""Tasks of a team: requested, queued, worked on, ended."""
