"""A team: an EM, managers and workers on IRC, each an agent with a daemon of its own, kept at work by this process.

The founding text calls this process the supervisor; here that word means the observer of one agent.
"""
