"""The host of skills: finds, starts, guards and stops them."""
