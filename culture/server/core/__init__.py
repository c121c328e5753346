"""The path of a message: dispatch, network state, router, rendering."""
