"""Speed: a load generator, and scripts that run it against culture and its peers."""
