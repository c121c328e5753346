"""The audit's tests."""
