"""One POST against a receiver that is slow, broken, elsewhere, or not who it says it is."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from culture.clients.shared.webhook.posting import MOST_REDIRECTS, NotPosted, Post, post
from culture.config.listen_policy import Tls
from culture.lib.http import HttpAccess
from culture.lib.ssrf_guard import HttpTarget
from tests.clients.shared.webhook.conftest import LISTED
from tests.support.receiver import Answer, Receiver, drip, endless, hold, raw, receiving, reset, status
from tests.support.tls import client_context, made
from tests.support.waiting import until

NAME = "hooks.test"
FORBIDDEN = [
    "169.254.169.254",
    "127.0.0.1",
    "[::1]",
    "[::ffff:10.0.0.1]",
    "100.64.1.1",
    "[fe80::1]",
    "0.0.0.0",
    "10.0.0.1",
    "localhost",
    "2130706433",
    "0x7f.1",
    "127.1",
    "[::ffff:7f00:1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[::]",
]


async def posted(url: str, ways: HttpAccess, timeout: float = 10.0) -> None:
    await post(Post(HttpTarget.parse(url), {"Content-Type": "application/json"}, b'{"text": "hi"}', ways), timeout)


async def refused(url: str, ways: HttpAccess, timeout: float = 10.0) -> NotPosted:
    with pytest.raises(NotPosted) as failure:
        await posted(url, ways, timeout)
    assert "s3cret" not in str(failure.value), "H6"
    return failure.value


async def test_it_arrives(receiver: Receiver, ways: HttpAccess) -> None:
    await posted(receiver.url("/hook/s3cret?x=1"), ways)
    (got,) = receiver.posts
    assert (got.path, got.said) == ("/hook/s3cret?x=1", {"text": "hi"})
    assert got.headers["Host"] == f"127.0.0.2:{receiver.port}" and got.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("manner", [hold, drip])
@pytest.mark.fault("H1")
async def test_one_that_is_too_slow_is_left(receiver: Receiver, ways: HttpAccess, manner: Answer) -> None:
    receiver.answers = [manner]
    failure = await refused(receiver.url(), ways, timeout=0.3)
    assert str(failure) == "no answer within 0.3 s" and failure.passing
    await until(lambda: not [thread for thread in threading.enumerate() if thread.name == "webhook"])


@pytest.mark.fault("H1")
async def test_a_name_that_is_not_found_out_in_time_is_left(receiver: Receiver) -> None:
    known = threading.Event()

    def slow(host: str, port: int) -> Sequence[str]:
        known.wait()
        return ["127.0.0.2"]

    failure = await refused(receiver.url(host=NAME), HttpAccess(LISTED, slow), timeout=0.2)
    assert failure.passing
    known.set()
    await until(lambda: not [thread for thread in threading.enumerate() if thread.name == "webhook"])
    assert receiver.posts == []


async def test_much_of_an_answer_is_not_read(receiver: Receiver, ways: HttpAccess) -> None:
    receiver.answers = [endless]
    await posted(receiver.url(), ways)
    assert len(receiver.posts) == 1


@pytest.mark.parametrize(
    ("manner", "why", "passing"),
    [
        (status(500), "127.0.0.2 answered 500", True),
        (status(429, Retry_After="7"), "127.0.0.2 answered 429", True),
        (status(404), "127.0.0.2 answered 404", False),
        (status(303, Location="/s3cret"), "127.0.0.2 answered 303", False),
        (reset, "no connection to 127.0.0.2: ", True),
        (raw(b"SSH-2.0-x\r\n"), "127.0.0.2 does not speak HTTP: BadStatusLine", True),
        (raw(b""), "no connection to 127.0.0.2: RemoteDisconnected", True),
    ],
)
@pytest.mark.fault("H2", "H6")
async def test_what_is_no_success_is_told(
    receiver: Receiver, ways: HttpAccess, manner: Answer, why: str, passing: bool
) -> None:
    receiver.answers = [manner]
    failure = await refused(receiver.url(), ways)
    assert str(failure).startswith(why) and failure.passing == passing
    assert failure.retry_after == (7.0 if "429" in why else None)


async def test_nobody_there(receiver: Receiver, ways: HttpAccess) -> None:
    failure = await refused(f"http://127.0.0.2:{_free_port()}/s3cret", ways)
    assert str(failure) == "no connection to 127.0.0.2: Connection refused" and failure.passing


def _free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.2", 0))
        return int(unused.getsockname()[1])


@pytest.mark.parametrize("host", FORBIDDEN)
@pytest.mark.fault("H3")
async def test_a_redirect_to_around_here_is_refused(
    receiver: Receiver, ways: HttpAccess, connected: list[str], host: str
) -> None:
    receiver.answers = [status(307, Location="/again"), status(302, Location=f"http://{host}:{receiver.port}/s3cret")]
    failure = await refused(receiver.url(), ways)
    assert "address of a private network" in str(failure) and not failure.passing
    assert connected == ["127.0.0.2", "127.0.0.2"] and len(receiver.posts) == 2


@pytest.mark.parametrize("host", FORBIDDEN)
@pytest.mark.fault("H3", "H5")
async def test_such_an_address_is_refused_from_the_start(receiver: Receiver, connected: list[str], host: str) -> None:
    failure = await refused(f"http://{host}:{receiver.port}/s3cret", HttpAccess())
    assert "not listed in allow_private" in str(failure) and connected == [] and receiver.calls == 0


@pytest.mark.fault("H3")
async def test_redirects_are_followed_so_far(receiver: Receiver, ways: HttpAccess) -> None:
    again = status(308, Location="/next?x=s3cret")
    receiver.answers = [again] * MOST_REDIRECTS
    await posted(receiver.url(), ways)
    assert [got.path for got in receiver.posts] == ["/hook/s3cret", *["/next?x=s3cret"] * MOST_REDIRECTS]
    assert {got.body for got in receiver.posts} == {b'{"text": "hi"}'}
    receiver.answers = [again] * (MOST_REDIRECTS + 1)
    assert str(await refused(receiver.url(), ways)) == "127.0.0.2 redirects more than 3 times"


class Rebinding:
    """A name that is at another address each time it is asked for."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked = 0

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        return self._answers.pop(0)


@pytest.mark.fault("H3", "H5")
async def test_what_is_checked_is_what_is_called(receiver: Receiver, connected: list[str]) -> None:
    names = Rebinding(["127.0.0.2"], ["127.0.0.1"], ["10.0.0.1", "127.0.0.2"], ["::ffff:127.0.0.1"])
    url, ways = receiver.url(host=NAME), HttpAccess(LISTED, names)
    await posted(url, ways)
    assert names.asked == 1 and connected == ["127.0.0.2"], "asked once, and called there"
    assert "hooks.test is at an address of a private network" in str(await refused(url, ways))
    assert connected == ["127.0.0.2"], "the second time it was elsewhere"
    await posted(url, ways)
    assert connected == ["127.0.0.2", "127.0.0.2"], "of several only the permitted"
    await refused(url, ways)
    assert len(connected) == 2 and len(receiver.posts) == 2


@pytest.mark.fault("H3")
async def test_a_name_that_moves_during_a_redirect_is_checked_again(receiver: Receiver, connected: list[str]) -> None:
    receiver.answers = [status(307, Location="/again")]
    await refused(receiver.url(host=NAME), HttpAccess(LISTED, Rebinding(["127.0.0.2"], ["169.254.169.254"])))
    assert connected == ["127.0.0.2"]


def served(files: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    return context


def trusting(file: Path) -> HttpAccess:
    return HttpAccess(LISTED, lambda host, port: ["127.0.0.2"], lambda: client_context(trusted=file))


async def test_with_tls_it_is_the_name_that_is_checked(tmp_path: Path) -> None:
    """The connection goes to a number, the certificate and SNI are of the name."""
    files, _ = made(tmp_path, NAME)
    asked: list[str] = []
    context = served(files)
    context.sni_callback = lambda connection, name, context: asked.append(name)  # type: ignore[assignment]
    async with receiving(context) as receiver:
        await posted(receiver.url(scheme="https", host=NAME), trusting(files.certificate))
        assert len(receiver.posts) == 1 and asked == [NAME]


@pytest.mark.parametrize("wrong", ["another name", "not trusted", "expired"])
@pytest.mark.fault("H11", "H6")
async def test_a_wrong_certificate_gets_nothing(tmp_path: Path, wrong: str) -> None:
    files, _ = made(tmp_path, "other.test" if wrong == "another name" else NAME, ago=60 if wrong == "expired" else 0)
    (tmp_path / "more").mkdir()
    trusted = made(tmp_path / "more", NAME)[0] if wrong == "not trusted" else files
    async with receiving(served(files)) as receiver:
        failure = await refused(receiver.url(scheme="https", host=NAME), trusting(trusted.certificate))
        assert str(failure).startswith("the certificate of hooks.test is not trusted: ") and not failure.passing
        assert receiver.posts == []


@pytest.mark.fault("H11")
async def test_a_receiver_without_tls_gets_nothing(tmp_path: Path, receiver: Receiver) -> None:
    files, _ = made(tmp_path, NAME)
    await refused(receiver.url(scheme="https", host=NAME), trusting(files.certificate), timeout=0.3)
    assert receiver.calls == 1 and receiver.posts == []


@pytest.mark.fault("H11")
async def test_there_is_no_way_from_https_to_http(tmp_path: Path, receiver: Receiver) -> None:
    files, _ = made(tmp_path, NAME)
    async with receiving(served(files)) as secure:
        secure.answers = [status(307, Location=receiver.url())]
        failure = await refused(secure.url(scheme="https", host=NAME), trusting(files.certificate))
        assert str(failure) == "redirects from https to http, at 127.0.0.2" and receiver.posts == []


async def test_a_post_that_is_cancelled_leaves_no_thread(receiver: Receiver, ways: HttpAccess) -> None:
    receiver.answers = [hold]
    task = asyncio.create_task(posted(receiver.url(), ways))
    await receiver.got()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not [thread for thread in threading.enumerate() if thread.name == "webhook"])
