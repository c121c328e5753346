"""What an agent calls to be on IRC; the standard library alone, so that it starts at once."""
