"""Subscriptions of clients: MONITOR, metadata, read markers; notices for bystanders."""
