"""Vectors in a quarter of their size: one byte per dimension, the direction alone."""

import numpy as np
from numpy.typing import NDArray

from culture.skills.history.semantic.embedder import Floats

Codes = NDArray[np.int8]
_LARGEST = 127


def coded(rows: Floats) -> Codes:
    """Each row scaled so that its largest number just fits; a row of zeros stays one."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scaled: Floats = np.divide(rows * _LARGEST, largest, out=np.zeros_like(rows), where=largest > 0)
    return np.rint(scaled).astype(np.int8)


def unit(vector: Floats) -> Floats:
    """The same direction, of length one; zeros stay zeros."""
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if length > 0 else vector
