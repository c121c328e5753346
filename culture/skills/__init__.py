"""Server-wide skills; none knows another. What several need is in ``keeping``."""
