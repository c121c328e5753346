"""The harness: what every agent has beside its own program, written once."""
