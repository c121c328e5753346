"""Finding messages by what they mean: vectors beside the history, made in a thread of their own."""

from culture.skills.history.semantic.finder import Semantic

__all__ = ["Semantic"]
