"""A model behind an endpoint that speaks OpenAI's embeddings: llama.cpp, vLLM, a cloud."""

import json
import socket
import threading
import time
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from culture.config.skills import Embeddings
from culture.skills.history.semantic.embedder import Floats, Indigestible
from culture.skills.history.store import Unavailable

_MOST_BYTES = 64 << 20
_CHUNK = 1 << 16
_MOST_DIMENSIONS = 16_384
_TEXTS_FAULT = frozenset({400, 413, 422})


class Endpoint:
    """Asks for vectors over HTTP."""

    batch = 32

    def __init__(self, settings: Embeddings) -> None:
        self.name = settings.model
        self._address = urlsplit(settings.url or "")
        self._timeout = settings.timeout
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if settings.key is not None:
            self._headers["Authorization"] = f"Bearer {settings.key}"
        self._open: set[HTTPConnection] = set()
        self._turn = threading.Lock()
        self._is_closed = False

    def embed(self, texts: Sequence[str], seconds: float | None = None) -> Floats:
        """One row per text, within the time there is."""
        end = time.monotonic() + min(self._timeout, self._timeout if seconds is None else seconds)
        try:
            return _rows(self._ask({"model": self.name, "input": list(texts)}, end), len(texts))
        except TimeoutError as error:
            raise Unavailable("the embeddings endpoint takes too long") from error
        except (OSError, HTTPException) as error:
            raise Unavailable(
                f"the embeddings endpoint is not to be reached: {error or type(error).__name__}"
            ) from error

    def close(self) -> None:
        """End what other threads wait for."""
        with self._turn:
            self._is_closed = True
            for connection in self._open:
                if connection.sock is not None:
                    _shut(connection.sock)

    def _ask(self, question: dict[str, Any], end: float) -> bytes:
        connection = self._connection(end)
        try:
            connection.request("POST", self._path, json.dumps(question), self._headers)
            with connection.getresponse() as response:
                return _body(response, end)
        finally:
            with self._turn:
                self._open.discard(connection)
            connection.close()

    def _connection(self, end: float) -> HTTPConnection:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        kind = HTTPSConnection if self._address.scheme == "https" else HTTPConnection
        connection = kind(self._address.hostname or "", self._address.port, timeout=left)
        with self._turn:
            if self._is_closed:
                raise Unavailable("the search is being stopped")
            self._open.add(connection)
        return connection

    @property
    def _path(self) -> str:
        """``http://host``, ``http://host/v1`` and ``http://host/v1/embeddings`` mean the same."""
        base = self._address.path.rstrip("/").removesuffix("/embeddings")
        return f"{base}/embeddings" if base.endswith("/v1") else f"{base}/v1/embeddings"


def _body(response: HTTPResponse, end: float) -> bytes:
    if response.status in _TEXTS_FAULT:
        raise Indigestible(f"the embeddings endpoint answered {response.status}")
    if response.status != 200:
        # What else it says may repeat the key.
        raise Unavailable(f"the embeddings endpoint answered {response.status}")
    answer = bytearray()
    while chunk := response.read1(_CHUNK):
        answer += chunk
        if time.monotonic() > end:
            raise TimeoutError
        if len(answer) > _MOST_BYTES:
            raise Unavailable("the embeddings endpoint answers with far too much")
    return bytes(answer)


def _rows(answer: bytes, number: int) -> Floats:
    """The vectors of an answer, in the order of the texts."""
    try:
        data = sorted(json.loads(answer)["data"], key=lambda each: int(each["index"]))
        rows = np.array([each["embedding"] for each in data], np.float32)
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise Unavailable("the embeddings endpoint answers with something else than vectors") from error
    if (
        rows.ndim != 2
        or len(rows) != number
        or not 0 < rows.shape[1] <= _MOST_DIMENSIONS
        or not np.isfinite(rows).all()
    ):
        raise Unavailable("the embeddings endpoint answers with something else than a vector for each text")
    return rows


def _shut(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
