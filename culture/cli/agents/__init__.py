"""The commands that start agents, stop them, look at them, and talk to them."""
