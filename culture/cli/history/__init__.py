"""``culture history``: what was said, for the owner of the machine."""
