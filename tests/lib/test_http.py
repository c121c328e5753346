"""Outgoing HTTP: bounded in time and size, only where it may go. TLS and redirects: the webhook's tests."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException, IncompleteRead

import pytest

from culture.lib.http import AnswerTooLong, HttpAccess, HttpRequest
from culture.lib.ssrf_guard import HttpTarget, TargetRefused
from tests.support.client import PATIENCE

CONFIGURED = HttpAccess(is_configured=True)
ANSWER = b"HTTP/1.1 200 OK\r\nX-Test: yes\r\nContent-Length: 5\r\n\r\nhello"


@contextmanager
def serving(answer: Callable[[socket.socket, threading.Event], None]) -> Iterator[tuple[HttpTarget, list[bytes]]]:
    """A server on loopback for one connection; yields its address and what it was sent."""
    requests: list[bytes] = []
    over = threading.Event()

    def serve() -> None:
        with contextlib.suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                requests.append(connection.recv(65536))
                answer(connection, over)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield HttpTarget.parse(f"http://127.0.0.1:{listener.getsockname()[1]}/path?query=1"), requests
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def sends(data: bytes) -> Callable[[socket.socket, threading.Event], None]:
    return lambda connection, over: connection.sendall(data)


def drips(head: bytes, drop: bytes) -> Callable[[socket.socket, threading.Event], None]:
    def drip(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(head)
        while not over.wait(0.005):
            connection.sendall(drop)

    return drip


def test_an_answer_has_status_headers_and_body() -> None:
    with serving(sends(ANSWER)) as (target, requests):
        answer = HttpRequest("GET", target, {"Accept": "*/*"}, access=CONFIGURED, max_body=5).run(PATIENCE)
    assert (answer.status, answer.headers["x-test"], answer.body) == (200, "yes", b"hello")
    assert requests[0].startswith(b"GET /path?query=1 HTTP/1.1\r\n") and b"Connection: close\r\n" in requests[0]


def test_a_body_that_is_too_long_is_not_read() -> None:
    with serving(sends(ANSWER)) as (target, _), pytest.raises(AnswerTooLong):
        HttpRequest("GET", target, {}, access=CONFIGURED, max_body=4).run(PATIENCE)


def test_a_body_that_ends_too_early_is_no_answer() -> None:
    with serving(sends(ANSWER[:-1])) as (target, _), pytest.raises(IncompleteRead):
        HttpRequest("GET", target, {}, access=CONFIGURED, max_body=5).run(PATIENCE)


def test_a_body_that_nobody_wants_is_not_read() -> None:
    with serving(drips(ANSWER, b"x")) as (target, _):
        assert HttpRequest("POST", target, {}, b"{}", CONFIGURED).run(PATIENCE).body == b""


@pytest.mark.parametrize(
    "head", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"], ids=["line", "head", "body"]
)
def test_the_deadline_holds_for_a_server_that_drips(head: bytes) -> None:
    with serving(drips(head, b"x")) as (target, _), pytest.raises(TimeoutError):
        HttpRequest("GET", target, {}, access=CONFIGURED, max_body=1 << 20).run(0.2)


def test_a_deadline_that_is_over_sends_nothing() -> None:
    with serving(sends(ANSWER)) as (target, requests), pytest.raises(TimeoutError):
        HttpRequest("GET", target, {}, access=CONFIGURED).run(-1.0)
    assert requests in ([], [b""])


def test_another_thread_can_break_it_off() -> None:
    with serving(lambda connection, over: over.wait() and None) as (target, _):
        request = HttpRequest("GET", target, {}, access=CONFIGURED)
        breaker = threading.Timer(0.05, request.break_off)
        breaker.start()
        begun = time.monotonic()
        with pytest.raises((OSError, HTTPException)):
            request.run(PATIENCE)
        assert time.monotonic() - begun < PATIENCE / 2
        breaker.join()


def test_loopback_is_refused_unless_an_operator_configured_it() -> None:
    with serving(sends(ANSWER)) as (target, requests), pytest.raises(TargetRefused, match="private network"):
        HttpRequest("GET", target, {}).run(PATIENCE)
    assert requests in ([], [b""])


def test_a_redirect_is_an_answer_unless_it_is_to_be_followed() -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    with serving(sends(moved)) as (target, _):
        assert HttpRequest("GET", target, {}, access=CONFIGURED).run(PATIENCE).status == 302


def test_the_owner_of_a_local_port_is_checked_before_anything_is_sent() -> None:
    def refuse(connection: socket.socket) -> None:
        raise ConnectionError("somebody else's")

    with serving(sends(ANSWER)) as (target, requests), pytest.raises(ConnectionError, match="somebody else's"):
        HttpRequest("GET", target, {}, access=HttpAccess(is_configured=True, check_plain=refuse)).run(PATIENCE)
    assert requests in ([], [b""])


def test_a_header_of_ours_goes_before_a_login_in_the_url() -> None:
    with serving(sends(ANSWER)) as (target, requests):
        named = HttpTarget.parse(target.url.replace("http://", "http://user:word@"))
        HttpRequest("GET", named, {"Authorization": "Bearer key"}, access=CONFIGURED).run(PATIENCE)
    assert b"Authorization: Bearer key\r\n" in requests[0] and b"Basic" not in requests[0]
