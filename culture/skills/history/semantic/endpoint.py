"""A model behind an endpoint that speaks OpenAI's embeddings: llama.cpp, vLLM, a cloud."""

import json
import ssl
from collections.abc import Sequence
from http.client import HTTPException
from typing import Any

import numpy as np

from culture.config.peer_uid import check_peer
from culture.config.skills import Embeddings
from culture.lib.http import HttpAccess, HttpRequest
from culture.lib.ssrf_guard import HttpTarget
from culture.runtime import REAL, Runtime
from culture.skills.history.semantic.embedder import Floats, Indigestible
from culture.skills.history.store import Unavailable

_MOST_BYTES = 64 << 20
_CHUNK = 1 << 16
_MOST_DIMENSIONS = 16_384
_TEXTS_FAULT = frozenset({400, 413, 422})
_SETTING = "history.semantic.user: {user} in culture.yaml"


class Endpoint:
    """Asks for vectors over HTTP."""

    batch = 32

    def __init__(self, settings: Embeddings, runtime: Runtime = REAL) -> None:
        self._monotonic = runtime.monotonic
        self.name = settings.model
        base = settings.url or ""
        self._target = HttpTarget.parse(f"{_service(base)}/embeddings")
        trust = ssl.create_default_context()
        # All that people say goes there: not to whoever listens on the port while the endpoint is away.
        self._access = HttpAccess(
            trust=lambda: trust,
            is_configured=True,
            check_plain=lambda connection: check_peer(connection, settings.user, _SETTING, runtime=runtime),
        )
        self._timeout = settings.timeout
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if settings.key is not None:
            self._headers["Authorization"] = f"Bearer {settings.key}"
        self._open: dict[HttpRequest, None] = {}
        self._turn = runtime.lock()
        self._is_closed = False

    def embed(self, texts: Sequence[str], seconds: float | None = None) -> Floats:
        """One row per text, within the time there is."""
        end = self._monotonic() + min(self._timeout, self._timeout if seconds is None else seconds)
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
            for request in self._open:
                request.break_off()

    def _ask(self, question: dict[str, Any], end: float) -> bytes:
        body = json.dumps(question).encode()
        request = HttpRequest("POST", self._target, self._headers, body, self._access, max_body=_MOST_BYTES)
        with self._turn:
            if self._is_closed:
                raise Unavailable("the search is being stopped")
            self._open[request] = None
        try:
            answer = request.run(max(0.0, end - self._monotonic()))
        finally:
            with self._turn:
                self._open.pop(request, None)
        if answer.status in _TEXTS_FAULT:
            raise Indigestible(f"the embeddings endpoint answered {answer.status}")
        if answer.status != 200:
            # What else it says may repeat the key.
            raise Unavailable(f"the embeddings endpoint answered {answer.status}")
        return answer.body


def _service(url: str) -> str:
    """``http://host``, ``http://host/v1`` and ``http://host/v1/embeddings`` mean the same."""
    base = url.rstrip("/").removesuffix("/embeddings")
    return base if base.endswith("/v1") else f"{base}/v1"


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
