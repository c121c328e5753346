"""``culture demo``: the whole thing in less than a minute, with nothing kept."""
