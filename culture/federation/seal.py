"""The mark that a server puts on its own messages, by which it knows them again when they come back."""

import hashlib
from pathlib import Path

from culture.lib.files import replace_file
from culture.lib.secret_compare import same_secret
from culture.runtime import REAL, Runtime

_SIZE = 32
_SHOWN = 16  # bytes of the seal that travel


class Seal:
    """Made with a key that never leaves the server."""

    def __init__(self, path: Path, runtime: Runtime = REAL) -> None:
        try:
            self._key = path.read_bytes()
        except FileNotFoundError:
            self._key = b""
        if len(self._key) != _SIZE:
            self._key = runtime.token_bytes(_SIZE)
            replace_file(path, self._key, runtime=runtime)
        self._empty = hashlib.blake2s(key=self._key, digest_size=_SHOWN)

    def of(self, line: str) -> str:
        """The seal of a line."""
        seal = self._empty.copy()  # quicker than one that takes the key anew
        seal.update(line.encode())
        return seal.hexdigest()

    def fits(self, line: str, seal: str) -> bool:
        """Did we put this seal on it?"""
        return same_secret(seal, self.of(line))
