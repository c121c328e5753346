"""An agent that answers for others from what was said before, and asks whoever knows when nothing was."""
