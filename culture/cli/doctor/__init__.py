"""``culture doctor``: what is wrong on this machine, or soon will be, and what to type."""
