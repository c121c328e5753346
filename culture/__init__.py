"""An IRC server and mesh for people and agents."""
