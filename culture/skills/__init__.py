"""The built-in skills of the server; none imports another. ``keeping`` is what they share."""
