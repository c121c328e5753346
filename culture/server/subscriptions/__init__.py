"""What clients subscribed to: MONITOR, metadata, read markers; notices for bystanders."""
