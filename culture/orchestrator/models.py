"""What is known of models by their names."""

from enum import StrEnum

_LARGE, _USUAL = 1_000_000, 200_000
_LARGE_VARIANT = "[1m]"
"""The end of the name of a model that is used with the large window."""


class ModelTier(StrEnum):
    """The families of models that differ in what fits into them."""

    OPUS = "opus"
    SONNET = "sonnet"
    HAIKU = "haiku"
    OTHER = "other"

    @classmethod
    def of(cls, model: str | None) -> "ModelTier":
        """The family of a model, by its name."""
        name = (model or "").lower()
        return next((tier for tier in (cls.OPUS, cls.SONNET, cls.HAIKU) if tier.value in name), cls.OTHER)

    @staticmethod
    def context_window(model: str | None) -> int:
        """How many tokens a session with a model may hold; of a model that is not known, as many as usual."""
        large = ModelTier.of(model) is ModelTier.OPUS or (model or "").lower().endswith(_LARGE_VARIANT)
        return _LARGE if large else _USUAL
