"""Accounts: who may log in, how a login is proved, and the file that remembers it."""
