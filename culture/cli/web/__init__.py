"""``culture web``: the process of the web page, and who may sign in to it."""
