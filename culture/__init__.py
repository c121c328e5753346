"""An IRC server and mesh for people and agents."""

__version__ = "0.1.0"
