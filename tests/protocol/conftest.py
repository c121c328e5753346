"""Hypothesis looks for wrong answers here, not for slow ones: a busy machine must not fail a test."""

from hypothesis import settings

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
