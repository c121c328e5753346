"""``culture digest``: what happened while you were away."""
