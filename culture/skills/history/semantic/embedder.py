"""What turns texts into vectors: the seam between the search and the models."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class Indigestible(Exception):
    """The embedder will never take one of these texts; others it may."""


class Embedder(Protocol):
    """Gives texts of similar meaning vectors of similar direction; called from several threads."""

    name: str
    """The model: vectors of another name are not compared with these."""
    batch: int
    """How many texts to give at once."""

    def embed(self, texts: Sequence[str], seconds: float | None = None) -> Floats:
        """One row per text; zeros where a text says nothing. Unavailable, or Indigestible, where it cannot."""

    def close(self) -> None:
        """Let go of it: what another thread waits for ends soon."""
