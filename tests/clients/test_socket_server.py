"""The daemon's socket: who may use it, what it answers, and that nothing a client does ends it."""

import asyncio
import errno
import multiprocessing
import os
import select
import socket
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from culture.clients.shared.desk import RequestFailed
from culture.clients.shared.ipc import LONGEST_LINE, Request, Response, Whisper, decode_answer, encode
from culture.clients.shared.socket_connection import Limits
from culture.clients.shared.socket_file import SocketTaken
from culture.clients.shared.socket_server import MOST_WHISPERS, SocketServer
from culture.config import paths
from culture.lib.files import private_directory
from tests.clients.ipc import Wire
from tests.support.waiting import PATIENCE

NICK = "spark-culture"


class Daemon:
    """Answers ``echo``; holds ``wait`` open until it is let go; fails at ``refuse`` and ``break``."""

    def __init__(self) -> None:
        self.let_go = asyncio.Event()
        self.waiting = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def __call__(self, request: Request) -> object:
        match request.type:
            case "refuse":
                raise RequestFailed("there is no such channel")
            case "break":
                raise ZeroDivisionError
            case "odd":
                return {1, 2}
            case "long":
                return "x" * (1 << 20)
            case "wait" | "irc_ask":
                self.waiting.set()
                try:
                    await self.let_go.wait()
                except asyncio.CancelledError:
                    self.cancelled.set()
                    raise
        return dict(request.fields)


Serve = Callable[..., Awaitable[SocketServer]]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path / "home"))
    runtime = tmp_path / "run"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    return runtime / "a.sock"


@pytest.fixture
def daemon() -> Daemon:
    return Daemon()


@pytest.fixture
async def serve(place: Path, daemon: Daemon) -> AsyncIterator[Serve]:
    running: list[SocketServer] = []

    async def start(**options: object) -> SocketServer:
        server = SocketServer(place, daemon, **options)  # type: ignore[arg-type]
        await server.start()
        running.append(server)
        return server

    yield start
    for server in running:
        await server.stop()


@pytest.fixture
async def server(serve: Serve) -> SocketServer:
    return await serve()


def hung_up(wire: socket.socket) -> bool:
    """Wait until the other side has closed, without reading what it said."""
    poll = select.poll()
    poll.register(wire.fileno(), 0)
    return bool(poll.poll(PATIENCE * 1000))


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def let_pass(path: Path) -> None:
    """Let every user of the machine come as far as this folder."""
    for folder in (path, *path.parents[:-1]):
        if not folder.stat().st_mode & 0o001:
            folder.chmod(0o711)


async def works(server: SocketServer) -> None:
    """Whatever happened before: somebody else is still answered."""
    async with Wire(server.path) as client:
        assert (await client.call("echo", "last", text="hello"))["data"] == {"text": "hello"}


@pytest.mark.requirement("H03", "H04")
async def test_a_response_carries_the_id_of_its_request(server: SocketServer) -> None:
    async with Wire(server.path) as client:
        assert await client.call("echo", "abc123", channel="#general") == {
            "type": "response",
            "id": "abc123",
            "ok": True,
            "data": {"channel": "#general"},
        }
        assert await client.call("refuse", "abc124") == {
            "type": "response",
            "id": "abc124",
            "ok": False,
            "error": "there is no such channel",
        }


async def test_a_request_that_waits_holds_up_no_other(server: SocketServer, daemon: Daemon) -> None:
    async with Wire(server.path) as client:
        client.ask("wait", "first")
        assert (await client.call("echo", "second"))["id"] == "second"
        daemon.let_go.set()
        assert (await client.line())["id"] == "first"


@pytest.mark.fault("E14")
@pytest.mark.parametrize(
    ("line", "id", "error"),
    [
        (b"hello\n", None, "the line is not JSON"),
        (b"\n", None, "the line is not JSON"),
        (b"\xff\xfe{}\n", None, "the line is not"),
        (b"[" * 100_000 + b"\n", None, "the JSON is nested too deeply"),
        (b'["irc_send"]\n', None, "not a JSON object"),
        (b'{"type": "echo"}\n', None, "has no id"),
        (b'{"type": "echo", "id": 7}\n', None, "id must be a string"),
        (b'{"type": "echo", "id": ""}\n', None, "id must be a string"),
        (b'{"id": "7"}\n', "7", "has no type"),
        (b'{"id": "7", "type": ["echo"]}\n', "7", "type must be a string"),
        (b'{"id": "7", "type": "break"}\n', "7", "the daemon failed (ZeroDivisionError)"),
        (b'{"id": "7", "type": "odd"}\n', "7", "its answer is not JSON"),
        (b"x" * 10_000_000 + b"\n", None, "longer than 1 MiB"),
        (b"x" * LONGEST_LINE, None, "longer than 1 MiB"),
    ],
)
async def test_a_line_that_is_no_request_is_answered_and_the_connection_goes_on(
    server: SocketServer, line: bytes, id: str | None, error: str
) -> None:
    async with Wire(server.path) as client:
        client.raw(line)
        answer = await client.line()
        assert (answer["type"], answer["id"], answer["ok"]) == ("response", id, False)
        assert error in answer["error"]
        if line.endswith(b"\n"):
            assert (await client.call("echo", "8"))["ok"]
    await works(server)


@pytest.mark.fault("E14")
async def test_a_last_line_without_newline_is_not_a_request(server: SocketServer) -> None:
    async with Wire(server.path) as client:
        client.raw(b'{"type": "echo", "id": "1"}')
        client.say_no_more()
        assert (await client.line())["error"] == "the last line has no newline"
        assert await client.closed()


@pytest.mark.fault("E14")
async def test_a_line_that_never_ends_does_not_keep_its_place(serve: Serve) -> None:
    server = await serve(limits=Limits(line_patience=0.01))
    async with Wire(server.path) as client:
        client.raw(b'{"type": "echo"')
        assert "without its newline" in (await client.line())["error"]
        assert await client.closed()
    await works(server)


@pytest.mark.fault("E14")
async def test_noise_without_an_end_is_cut_off(serve: Serve) -> None:
    server = await serve(limits=Limits(noise=2 * LONGEST_LINE))
    async with Wire(server.path) as client:
        client.raw(b"x" * 4 * LONGEST_LINE)
        assert "longer than 1 MiB" in (await client.line())["error"]
        assert "without an end" in (await client.line())["error"]
    await works(server)


@pytest.mark.fault("E14")
async def test_an_id_in_flight_cannot_be_used_again(server: SocketServer, daemon: Daemon) -> None:
    async with Wire(server.path) as client:
        client.ask("wait", "1")
        assert "still in flight" in (await client.call("echo", "1"))["error"]
        daemon.let_go.set()
        assert (await client.line())["ok"]
        assert (await client.call("echo", "1"))["ok"]


@pytest.mark.fault("E14")
async def test_a_client_has_so_many_requests_in_flight_and_no_more(serve: Serve, daemon: Daemon) -> None:
    server = await serve(limits=Limits(in_flight=3))
    async with Wire(server.path) as client:
        for number in range(3):
            client.ask("wait", str(number))
        assert "more than 3 requests in flight" in (await client.call("echo", "4"))["error"]
        await works(server)


@pytest.mark.fault("E14")
async def test_the_thousandth_client_is_told_that_there_is_no_room(server: SocketServer) -> None:
    async with AsyncExitStack() as crowd:
        clients = [await crowd.enter_async_context(Wire(server.path)) for _ in range(64)]
        assert (await clients[-1].call("echo"))["ok"]
        for _ in range(936):
            late = await crowd.enter_async_context(Wire(server.path))
            assert "64 clients are connected" in (await late.line())["error"]
            assert await late.closed()
        assert (await clients[0].call("echo"))["ok"]


@pytest.mark.fault("E14")
async def test_a_client_that_never_reads_is_closed_and_holds_up_nobody(serve: Serve) -> None:
    server = await serve(limits=Limits(in_flight=8, write_patience=0.2))
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.connect(str(server.path))
        for number in range(8):
            deaf.sendall(b'{"type": "long", "id": "%d"}\n' % number)
        async with Wire(server.path) as other:
            assert (await other.call("echo"))["ok"]
        assert await asyncio.to_thread(hung_up, deaf)
    await works(server)


async def test_one_that_only_listens_still_gets_its_answer(server: SocketServer, daemon: Daemon) -> None:
    """As ``nc -N`` does: it says no more, and waits."""
    async with Wire(server.path) as client:
        client.ask("wait")
        client.say_no_more()
        await asyncio.wait_for(daemon.waiting.wait(), PATIENCE)
        daemon.let_go.set()
        assert (await client.line())["ok"]
        assert await client.closed()


async def test_a_request_ends_some_time_after_its_client(serve: Serve, daemon: Daemon) -> None:
    server = await serve(limits=Limits(grace=0.01))
    async with Wire(server.path) as client:
        client.ask("wait")
        await asyncio.wait_for(daemon.waiting.wait(), PATIENCE)
    await asyncio.wait_for(daemon.cancelled.wait(), PATIENCE)
    await works(server)


async def test_a_question_ends_with_its_client_and_what_was_begun_beside_it_goes_on(
    serve: Serve, daemon: Daemon
) -> None:
    """Else the answer of a person would go to nobody; any other request is done to its end."""
    server = await serve(limits=Limits(grace=100 * PATIENCE))
    async with Wire(server.path) as client:
        client.ask("irc_ask")
        await asyncio.wait_for(daemon.waiting.wait(), PATIENCE)
    await asyncio.wait_for(daemon.cancelled.wait(), PATIENCE)
    daemon.waiting.clear()
    daemon.cancelled.clear()
    async with Wire(server.path) as client:
        client.ask("wait")
        await asyncio.wait_for(daemon.waiting.wait(), PATIENCE)
    await hangs_up(server, daemon)
    await asyncio.wait_for(daemon.cancelled.wait(), PATIENCE)
    assert len([task for task in asyncio.all_tasks() if task.get_name() == "wait"]) == 1
    daemon.let_go.set()
    await works(server)


async def test_who_still_waits_when_the_daemon_stops_is_told(server: SocketServer, daemon: Daemon) -> None:
    async with Wire(server.path) as client:
        client.ask("wait")
        await asyncio.wait_for(daemon.waiting.wait(), PATIENCE)
        await server.stop()
        assert (await client.line())["error"] == "the daemon is stopping"
        assert await client.closed()
    assert not server.path.exists()


# Whispers


@pytest.mark.requirement("H05", "H18")
async def test_whispers_wait_for_the_next_request_and_come_before_its_response(server: SocketServer) -> None:
    server.whisper("CORRECTION", "You've retried this 3 times. Ask #llama-cpp for help.")
    server.whisper("THINK_DEEPER", "This deserves extended thinking.")
    async with Wire(server.path) as client:
        client.ask("echo")
        assert await client.line() == {
            "type": "whisper",
            "whisper_type": "CORRECTION",
            "message": "You've retried this 3 times. Ask #llama-cpp for help.",
        }
        assert (await client.line())["whisper_type"] == "THINK_DEEPER"
        assert (await client.line())["type"] == "response"
        assert (await client.call("echo"))["type"] == "response", "each is delivered once"


@pytest.mark.requirement("H05")
async def test_who_waits_for_an_answer_hears_a_whisper_at_once(server: SocketServer, daemon: Daemon) -> None:
    async with Wire(server.path) as client:
        client.ask("wait")
        await asyncio.wait_for(daemon.waiting.wait(), PATIENCE)
        server.whisper("CORRECTION", "ask somebody else")
        assert (await client.line())["message"] == "ask somebody else"
        assert server.take_whispers() == []
        daemon.let_go.set()
        assert (await client.line())["type"] == "response"


async def test_a_client_that_only_listens_hears_it_too_and_takes_it_from_nobody(server: SocketServer) -> None:
    async with Wire(server.path) as listener, Wire(server.path) as agent:
        assert (await listener.call("echo"))["ok"]
        server.whisper("CORRECTION", "look again")
        assert (await listener.line())["type"] == "whisper"
        assert (await agent.call("echo"))["type"] == "whisper"
        assert (await agent.line())["type"] == "response"
        assert (await listener.call("echo", "2"))["type"] == "response", "it has heard this one"


async def test_a_look_at_the_status_takes_no_whisper_away(serve: Serve) -> None:
    server = await serve(carries=lambda type: type != "status")
    server.whisper("CORRECTION", "look again")
    async with Wire(server.path) as person:
        assert (await person.call("status"))["type"] == "response"
    assert server.take_whispers() == [Whisper("CORRECTION", "look again")]
    assert server.take_whispers() == []


async def test_the_oldest_of_too_many_whispers_go(server: SocketServer) -> None:
    for number in range(MOST_WHISPERS + 5):
        server.whisper("CORRECTION", str(number))
    kept = server.take_whispers()
    assert (len(kept), kept[0].message) == (MOST_WHISPERS, "5")


# The file


@pytest.mark.requirement("H01", "H02")
@pytest.mark.fault("C12", "E15")
async def test_the_socket_is_for_its_owner_alone(serve: Serve, place: Path) -> None:
    before = os.umask(0)
    try:
        await serve()
    finally:
        os.umask(before)
    assert mode_of(place) == 0o600
    assert mode_of(place.parent) == 0o700


@pytest.mark.fault("E15")
async def test_a_symlink_is_not_followed(serve: Serve, place: Path, tmp_path: Path) -> None:
    private_directory(place.parent)
    os.symlink(tmp_path / "elsewhere", place)
    with pytest.raises(SocketTaken, match="is a symlink"):
        await serve()
    assert os.readlink(place) == str(tmp_path / "elsewhere")
    assert "elsewhere" not in os.listdir(tmp_path)


@pytest.mark.fault("E15")
async def test_a_file_that_is_no_socket_is_left_alone(serve: Serve, place: Path) -> None:
    private_directory(place.parent)
    os.mkfifo(place)
    with pytest.raises(SocketTaken, match="is no socket"):
        await serve()
    assert stat.S_ISFIFO(os.lstat(place).st_mode)


@pytest.mark.fault("E15")
def test_a_path_that_is_too_long_is_refused_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CULTURE_HOME", "/homes/" + "x" * 90)
    with pytest.raises(ValueError, match=r"103 bytes.*choose a shorter nick"):
        paths.agent_socket(NICK + "x" * 90)


@pytest.mark.fault("E15")
async def test_a_long_path_is_refused_by_the_server_too(tmp_path: Path, daemon: Daemon) -> None:
    with pytest.raises(SocketTaken, match="103 bytes"):
        await SocketServer(tmp_path / ("x" * 100), daemon).start()


@pytest.mark.parametrize("nick", ["", "../../etc/passwd", "a\0b"])
def test_a_nick_cannot_lead_elsewhere(nick: str) -> None:
    with pytest.raises(ValueError, match="is not a nick"):
        paths.agent_socket(nick)


@pytest.mark.fault("E15")
async def test_a_folder_that_others_may_write_to_is_refused(serve: Serve, place: Path) -> None:
    private_directory(place.parent).chmod(0o777)
    with pytest.raises(SocketTaken, match="others may write"):
        await serve()
    place.parent.chmod(0o1777)
    await serve()


@pytest.mark.fault("B15")
async def test_the_socket_of_a_dead_daemon_is_replaced(serve: Serve, place: Path) -> None:
    private_directory(place.parent)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(place))
    await works(await serve())


@pytest.mark.fault("B15")
async def test_a_living_daemon_keeps_its_socket(serve: Serve, server: SocketServer) -> None:
    with pytest.raises(SocketTaken, match="is running"):
        await serve()
    await works(server)


async def test_a_living_daemon_with_another_home_keeps_its_socket(
    serve: Serve, server: SocketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path / "other"))
    with pytest.raises(SocketTaken, match="is running"):
        await serve()
    await works(server)


async def test_a_daemon_that_stops_while_somebody_is_connected_logs_no_error(
    server: SocketServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with Wire(server.path) as client:
        await client.call("echo")
        await server.stop()
        assert await client.closed()
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_daemon_that_stops_leaves_the_socket_of_its_successor(server: SocketServer, place: Path) -> None:
    os.unlink(place)
    with socket.socket(socket.AF_UNIX) as successor:
        successor.bind(str(place))
        await server.stop()
        assert os.listdir(place.parent) == [place.name]


def _connect_as(uid: int, path: str, answer: "multiprocessing.SimpleQueue[object]") -> None:
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    with socket.socket(socket.AF_UNIX) as wire:
        wire.settimeout(PATIENCE)
        try:
            wire.connect(path)
            answer.put(wire.recv(1000))
        except OSError as error:
            answer.put(error.errno)


@pytest.mark.fault("C12", "E16")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("mode", [0o600, 0o666])
async def test_another_user_is_refused(server: SocketServer, place: Path, mode: int) -> None:
    """By the file's mode; and where that was changed, by the kernel's word on who they are."""
    os.chmod(place, mode)
    let_pass(place.parent)
    context = multiprocessing.get_context("spawn")
    answer = context.SimpleQueue()
    stranger = context.Process(target=_connect_as, args=(65534, str(place), answer))
    stranger.start()
    try:
        got = await asyncio.to_thread(answer.get)
    finally:
        await asyncio.to_thread(stranger.join)
    if mode == 0o600:
        assert got == errno.EACCES
    else:
        assert isinstance(got, bytes) and b"belongs to another user" in got
    await works(server)


async def hangs_up(server: SocketServer, daemon: Daemon) -> None:
    """Ask, and go before there is an answer; the daemon has not looked since whether anybody listens."""
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(str(server.path))
        wire.sendall(b'{"type": "irc_ask", "id": "1", "question": "may I?"}\n')
        await daemon.waiting.wait()


async def test_an_answer_to_who_has_just_hung_up_is_given_back(serve: Serve, daemon: Daemon) -> None:
    unheard: list[object] = []
    server = await serve(unheard=unheard.append)
    await hangs_up(server, daemon)
    daemon.let_go.set()
    await works(server)
    assert unheard == [{"question": "may I?"}]


async def test_an_answer_to_who_listens_is_not_given_back(serve: Serve, daemon: Daemon) -> None:
    unheard: list[object] = []
    server = await serve(unheard=unheard.append)
    async with Wire(server.path) as client:
        daemon.let_go.set()
        assert (await client.call("irc_ask", "1", question="may I?"))["data"] == {"question": "may I?"}
    assert unheard == []


@pytest.mark.parametrize("answered", [False, True])
async def test_a_whisper_to_who_has_just_hung_up_comes_with_the_next_call(
    server: SocketServer, daemon: Daemon, answered: bool
) -> None:
    if not answered:
        await hangs_up(server, daemon)
        server.whisper("CORRECTION", "look at the tests")
    else:
        server.whisper("CORRECTION", "look at the tests")
        await hangs_up(server, daemon)
        daemon.let_go.set()
    async with Wire(server.path) as client:
        assert (await client.call("echo", "2"))["message"] == "look at the tests"


def _leave_connected(path: str, inherited: socket.socket) -> None:
    inherited.connect(path)


async def test_what_is_for_people_is_refused_where_the_process_that_connected_has_ended(
    place: Path, serve: Serve
) -> None:
    """An agent's child may connect and end: the socket is then its parent's, and nobody's by the pid."""
    await serve(for_people=lambda type: type == "resume")
    with socket.socket(socket.AF_UNIX) as client:
        child = multiprocessing.get_context("fork").Process(target=_leave_connected, args=(str(place), client))
        child.start()
        await asyncio.to_thread(child.join)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        for type, is_done in (("resume", False), ("echo", True)):
            await loop.sock_sendall(client, encode(Request(type, type, {})))
            answer = decode_answer(await asyncio.wait_for(loop.sock_recv(client, 1 << 16), PATIENCE))
            assert isinstance(answer, Response) and answer.ok is is_done, answer
