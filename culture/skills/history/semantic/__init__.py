"""Finds messages by meaning."""

from pathlib import Path

from culture.config.skills import Embeddings
from culture.skills.history.store import Kept, Store, View


class Semantic:
    """Stands in until the embedder is there."""

    why_not: str | None = 'install the extra: pip install "culture[semantic]"'

    def __init__(self, store: Store, folder: Path, settings: Embeddings) -> None:
        pass

    def start(self) -> None:
        """Nothing to do."""

    def stop(self) -> None:
        """Nothing to do."""

    def note(self) -> None:
        """Nothing to do."""

    def forget(self, position: int) -> None:
        """Nothing to do."""

    def search(self, view: View, text: str, limit: int, seconds: float) -> list[Kept]:
        """Nothing is found."""
        return []
