"""Backup and restore: a server's data in one file, and back."""
