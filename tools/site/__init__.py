"""The documentation as a site: ``python -m tools.site`` makes site/ of docs/, without a network."""
