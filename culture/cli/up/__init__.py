"""What `culture up` shows while it runs."""
