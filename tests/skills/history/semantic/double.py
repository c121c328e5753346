"""A double of an embeddings endpoint, on loopback: the models cost money. Its vectors count the letters of a text."""

import json
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from culture.config.skills import Embeddings

Answer = Callable[[list[str]], tuple[int, bytes]]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def vector(text: str) -> list[float]:
    counts = Counter(text.lower())
    return [float(counts[letter]) for letter in LETTERS]


def right(texts: list[str]) -> tuple[int, bytes]:
    data = [{"object": "embedding", "index": number, "embedding": vector(text)} for number, text in enumerate(texts)]
    return 200, json.dumps({"object": "list", "data": data[::-1], "model": "letters"}).encode()


def shorter(texts: list[str]) -> tuple[int, bytes]:
    """Vectors of another dimension than before."""
    data = [{"index": number, "embedding": vector(text)[:3]} for number, text in enumerate(texts)]
    return 200, json.dumps({"data": data}).encode()


def always(status: int, body: bytes = b"") -> Answer:
    return lambda texts: (status, body)


def refusing(word: str) -> Answer:
    """400 for every request with this word in it."""
    return lambda texts: (400, b"too long") if any(word in text for text in texts) else right(texts)


class Double:
    """Answers as it is told to, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answer: Answer = right
        self.asked: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.keys: list[str | None] = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.was_asked = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def settings(self, suffix: str = "", **more: Any) -> Embeddings:
        said = {"url": f"http://127.0.0.1:{self._server.server_port}{suffix}", "model": "letters", **more}
        return Embeddings.model_validate(said)

    @property
    def texts(self) -> list[str]:
        return [text for question in self.asked for text in question["input"]]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.may_answer.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        double = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                double.asked.append(question)
                double.paths.append(self.path)
                double.keys.append(self.headers["Authorization"])
                double.was_asked.set()
                double.may_answer.wait()
                status, body = double.answer(question["input"])
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    pass  # whoever asked is gone

            def log_message(self, *args: object) -> None:
                pass

        return Handler
