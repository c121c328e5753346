"""Server-wide skills; none knows another."""
