"""Channels: who owns them, which are registered, what a client sees on joining."""
