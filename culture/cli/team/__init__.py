"""``culture team``: an EM, managers and workers on one project."""
