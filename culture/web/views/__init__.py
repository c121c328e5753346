"""The pages, each a module with its ``VIEW``."""
