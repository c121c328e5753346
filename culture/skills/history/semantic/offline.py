"""The model that comes with the extra: word vectors, added up. It needs no network and little time."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from culture.skills.history.semantic.embedder import Floats

# It would begin threads on every core, and complain whenever a process is started.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

_silence = logging.NullHandler()
logging.getLogger().addHandler(_silence)  # the import would set up logging where nobody has yet
try:
    import wordllama  # type: ignore[import-untyped]
finally:
    logging.getLogger().removeHandler(_silence)

_MOST = 2_000  # tokens of one text


class WordLlama:
    """Adds the vectors of a text's tokens, of which the direction counts."""

    name = "wordllama/l2_supercat_256"
    batch = 32

    def __init__(self) -> None:
        folder = Path(wordllama.__file__).parent
        model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
        self._tokens: Floats = model.embedding
        self._tokenizer = model.tokenizer
        self._tokenizer.no_padding()  # else one long text makes every other as long

    def embed(self, texts: Sequence[str], seconds: float | None = None) -> Floats:
        """One row per text."""
        rows = np.zeros((len(texts), self._tokens.shape[1]), np.float32)
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        for row, tokens in zip(rows, encoded, strict=True):
            if tokens.ids:
                np.add.reduce(self._tokens.take(tokens.ids[:_MOST], axis=0, mode="clip"), axis=0, out=row)
        return rows

    def close(self) -> None:
        """Nothing waits for it."""
