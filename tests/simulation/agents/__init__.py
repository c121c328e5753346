"""Daemons of agents in a simulated world, with scripted models, and the people who talk to them."""
