"""Another user holds the port of our server: no program of ours says or obeys anything there, and none gives up."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from culture.bridge.client import BridgeClient
from culture.bridge.settings import from_environment
from culture.cli.agents import irc_session
from culture.cli.agents.questions import questions
from culture.cli.doctor import network
from culture.cli.doctor.inventory import Inventory
from culture.cli.doctor.runner import FindingSeverity
from culture.cli.server import background
from culture.cli.web import process
from culture.clients.shared.assembly import assemble
from culture.config import paths, peer_uid
from culture.config.agents import ServerAddress
from culture.config.links import LinkConfig
from culture.config.model import Listen
from culture.config.peer_uid import PortHeld, check_peer
from culture.config.skills import Embeddings
from culture.lib.files import private_directory, replace_file
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.auth.oidc import issuer as issuers
from culture.server.auth.oidc.issuer import fetch
from culture.skills.history.semantic.endpoint import Endpoint
from culture.skills.history.store import Unavailable
from culture.transport import Address, ClientIdentity, IRCTransport, ServerUnreachable
from culture.transport.connection import dial
from culture.transport.one_shot import ask_once
from culture.web.app import serving as showing
from culture.web.ledger_client import LedgerClient
from culture.wiki.errors import WikiUnavailable
from culture.wiki.remote import RemoteWiki
from tests.federation.raw import mesh_of
from tests.support.agents import agents_yaml, playbook
from tests.support.people import verifier
from tests.support.ports import reserved
from tests.support.servers import serving
from tests.support.squatter import GREETING, UID, USER, squatting
from tests.support.waiting import until
from tests.support.web import settings_for

TOKEN = "a-token-that-nobody-else-may-have"
NICK = "spark-ada"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder, and nothing in the environment that leads to another."""
    folder = private_directory(tmp_path / "home")
    monkeypatch.setenv("CULTURE_HOME", str(folder))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return folder


@pytest.fixture
def port() -> Iterator[int]:
    with reserved() as free:
        yield free


Reason = Callable[[], str]
IsConnected = Callable[[], bool]
Program = Callable[[Path, int, str], AbstractAsyncContextManager[tuple[Reason, IsConnected]]]


@asynccontextmanager
async def daemon(home: Path, port: int, token: str) -> AsyncIterator[tuple[Reason, IsConnected]]:
    """An agent's daemon that begins."""
    config = agents_yaml(home, port, {"nick": NICK, "playbook": playbook(home, [])})
    if token:
        replace_file(paths.secret_file(NICK), token)
    agent = assemble(config, NICK)
    reasons = []
    agent.transport._reconnector._on_state = lambda condition, reason: reasons.append(reason)
    starting = asyncio.create_task(agent.start())
    try:
        yield lambda: next(filter(None, reasons), ""), lambda: agent.transport.connected
    finally:
        starting.cancel()
        await asyncio.wait([starting])
        await agent.stop()


@asynccontextmanager
async def page(home: Path, port: int, token: str) -> AsyncIterator[tuple[Reason, IsConnected]]:
    """A web page; it has a token always."""
    problems = [""]
    async with showing(settings_for(home, port), on_problem=problems.append):
        yield lambda: next(filter(None, problems), ""), lambda: problems[-1] == "" and len(problems) > 1


@asynccontextmanager
async def bridge(home: Path, port: int, token: str) -> AsyncIterator[tuple[Reason, IsConnected]]:
    """A bridge."""
    said = {"IRC_SERVER": "127.0.0.1", "IRC_PORT": str(port)}
    bridge = BridgeClient(from_environment({**said, "IRC_TOKEN": token} if token else said), lambda nick: None)
    async with bridge.running():
        yield lambda: bridge._problem if "held" in bridge._problem else "", lambda: bridge.irc.connected


@pytest.mark.fault("C10")
@pytest.mark.parametrize(
    ("program", "token"),
    [(daemon, ""), (daemon, TOKEN), (bridge, ""), (bridge, TOKEN), (page, "")],
    ids=["daemon", "daemon with a token", "bridge", "bridge with a token", "web page, which has a token always"],
)
async def test_a_squatter_is_told_nothing_and_the_program_connects_once_it_is_gone(
    program: Program, token: str, home: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The greeting has a welcome, a refused password and an ERROR: to obey them would be to come in, or to give up."""
    async with AsyncExitStack() as stack:
        squatter = await stack.enter_async_context(squatting(monkeypatch, port))
        reason, is_connected = await stack.enter_async_context(program(home, port, token))
        assert await squatter.heard(tries=2) == b""
        assert f"port {port} of this machine is held by user {USER}, not by you" in reason()
        assert f"server.user: {USER} in agents.yaml" in reason()
        assert not is_connected()
        await squatter.end()
        if not token:  # the others' is of no account here
            await stack.enter_async_context(serving(home, listen=(Listen(port=port),)))
            await until(is_connected)


async def test_a_page_whose_account_was_revoked_connects_once_it_may_again(home: Path) -> None:
    """It gave up for good; doctor and `culture web status` know of it meanwhile."""
    settings = settings_for(home, 0)
    store = AccountStore(settings.server.accounts_file, "spark")
    async with serving(home) as ircd:
        problems = [""]
        store.revoke("web")
        own = ClientIdentity("spark-web", "web", settings.token)
        tokens = [settings.token]
        renewed = lambda: replace(own, secret=tokens[-1])  # noqa: E731
        ledger = LedgerClient(
            Address("127.0.0.1", ircd.port), own, on_problem=problems.append, current_identity=renewed, pause=0.05
        )
        await ledger.start()
        try:
            await until(lambda: "SASL" in problems[-1])
            store.set_password("web", verifier())
            tokens.append(store.add_token("web", "again"))
            await until(lambda: problems[-1] == "")
        finally:
            await ledger.stop()


async def test_a_bridge_whose_account_was_missing_connects_once_there_is_one(home: Path) -> None:
    tokens: dict[str, str] = {"mcp-bridge": TOKEN}
    async with serving(home) as ircd:
        said = {"IRC_SERVER": "127.0.0.1", "IRC_PORT": str(ircd.port)}
        bridge = BridgeClient(from_environment(said), tokens.get, pause=0.05)
        async with bridge.running():
            await until(lambda: "cannot be on IRC" in bridge._problem)
            store = AccountStore(home / "accounts.json", "spark")
            store.add(new_account("mcp-bridge", UserClass.AGENT))
            tokens["mcp-bridge"] = store.add_token("mcp-bridge", "made")
            await until(lambda: bridge.irc.connected)


async def test_doctor_tells_who_holds_the_port_and_which_programs_wait(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with squatting(monkeypatch) as squatter:
        (home / "culture.yaml").write_text(f'{{"name": "spark", "listen": [{{"port": {squatter.port}}}]}}')
        agents_yaml(home, squatter.port, {"nick": NICK, "playbook": playbook(home, [])})
        [finding] = await asyncio.to_thread(lambda: list(network.check_held_ports(Inventory())))
        assert finding.severity is FindingSeverity.ERROR
        assert finding.what == f"port {squatter.port} of this machine is held by user {USER}, not by you"
        assert finding.why.startswith("the agents, the page and the command line cannot connect")
        assert f"server.user: {USER} in agents.yaml" in finding.next
        await asyncio.to_thread(lambda: list(network.check_agents_address(Inventory())))
        assert await squatter.heard(tries=1) == b""


def test_doctor_tells_of_a_page_that_is_not_connected(home: Path) -> None:
    (home / "culture.yaml").write_text('{"name": "spark"}')
    with process.held("spark") as pid_file:
        pid_file.change(url="http://127.0.0.1:6680", port=6680)
        assert list(network.check_pages(Inventory())) == []
        pid_file.change(problem="port 6667 of this machine is held by user nobody")
        [finding] = network.check_pages(Inventory())
        assert "is not connected to it: port 6667 of this machine is held by user nobody" in finding.what
        pid_file.change(problem="")
        assert list(network.check_pages(Inventory())) == []


@pytest.mark.parametrize("token", ["", TOKEN], ids=["without a token", "with a token"])
async def test_the_command_line_ends_at_a_squatter_and_says_who_it_is(
    token: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if token:
        replace_file(paths.secret_file(NICK), token)
    async with squatting(monkeypatch) as squatter:
        there = Address("127.0.0.1", squatter.port)
        with pytest.raises(ServerUnreachable, match=f"held by user {USER}, not by you"):
            async with irc_session.connected(irc_session.IrcPerson(there, NICK)):
                pass
        with pytest.raises(PortHeld, match="nothing was sent"):
            await ask_once(there, ClientIdentity("ori"), "REDEEM", "ori", "key", "password")
        assert isinstance(background.holder(ServerAddress(host="127.0.0.1", port=squatter.port)), PortHeld)
        assert await squatter.heard(tries=3) == b""


async def test_a_command_that_starts_agents_says_at_once_that_the_port_is_held(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with squatting(monkeypatch) as squatter:
        with pytest.raises(typer.Exit):
            background.check_server(ServerAddress(host="127.0.0.1", port=squatter.port))
        assert f"held by user {USER}" in capsys.readouterr().err


async def test_questions_of_agents_whose_port_is_held_are_an_error(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever holds the port answers connections, and is no server that could pass an answer on."""
    async with squatting(monkeypatch) as squatter:
        agents_yaml(home, squatter.port, {"nick": NICK, "playbook": playbook(home, [])})
        with pytest.raises(typer.Exit) as ended:
            await asyncio.to_thread(questions)
        assert ended.value.exit_code == 1 and f"held by user {USER}" in capsys.readouterr().err


async def test_a_link_s_secret_is_not_told_to_a_squatter(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "known-to-two-servers"
    to_thor = LinkConfig(name="thor", secret=secret, address=f"127.0.0.1:{port}")
    async with AsyncExitStack() as stack:
        squatter = await stack.enter_async_context(squatting(monkeypatch, port))
        spark = await stack.enter_async_context(serving(tmp_path / "spark", links=(to_thor,)))
        assert await squatter.heard(tries=2) == b""
        dialler = mesh_of(spark).dialler
        assert f"held by user {USER}, not by you" in dialler.problems["thor"]
        assert f"--user {USER}" in dialler.problems["thor"]
        assert not mesh_of(spark).links
        await squatter.end()
        to_spark = LinkConfig(name="spark", secret=secret)
        await stack.enter_async_context(
            serving(tmp_path / "thor", name="thor", listen=(Listen(port=port),), links=(to_spark,))
        )
        await until(lambda: "thor" in mesh_of(spark).links)


async def test_the_keys_of_an_issuer_are_not_read_from_a_squatter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is taken for the issuer says who logs in as whom; one that is named is asked."""
    answer = 'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"keys": []}'
    async with squatting(monkeypatch, says=answer) as squatter:
        url, end = f"http://127.0.0.1:{squatter.port}/keys", time.monotonic() + 10
        with pytest.raises(issuers.IssuerUnreachable, match=f"held by user {USER}.*oidc.user: {USER}"):
            await asyncio.to_thread(fetch, url, end)
        assert await squatter.heard(tries=1) == b""
        assert await asyncio.to_thread(fetch, url, end, USER) == {"keys": []}


async def test_messages_are_not_sent_to_a_squatter_for_their_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint of embeddings is sent all that people say."""
    async with squatting(monkeypatch, says="HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n") as squatter:
        settings = {"url": f"http://127.0.0.1:{squatter.port}", "model": "letters", "timeout": "10s"}
        stranger, named = (Endpoint(Embeddings.model_validate({**settings, "user": user})) for user in (None, USER))
        with pytest.raises(Unavailable, match=f"held by user {USER}.*history.semantic.user: {USER}"):
            await asyncio.to_thread(stranger.embed, ["the password is xyzzy"])
        assert await squatter.heard(tries=1) == b""
        with pytest.raises(Unavailable, match="answered 500"):
            await asyncio.to_thread(named.embed, ["hello"])


@pytest.mark.parametrize("named", [USER, str(UID)])
async def test_a_user_who_is_named_may_run_the_server(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By name, or by uid where a container has no name for it; both for clients and for links."""
    async with squatting(monkeypatch, says="") as squatter:
        irc = IRCTransport(Address("127.0.0.1", squatter.port, user=named), ClientIdentity(NICK, "ada", TOKEN))
        starting = asyncio.create_task(irc.start())
        await squatter.until(lambda: b"NICK" in squatter.told)
        starting.cancel()
        await asyncio.wait([starting])
        to_thor = LinkConfig(name="thor", secret=TOKEN, address=f"127.0.0.1:{squatter.port}", user=named)
        async with serving(tmp_path, links=(to_thor,)):
            await squatter.until(lambda: TOKEN.encode() in squatter.told)


@pytest.mark.parametrize("path", ["mcp", "sse"])
async def test_a_page_of_the_wiki_is_neither_read_from_a_squatter_nor_shown_to_it(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with squatting(monkeypatch, says="HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as squatter:
        wiki = RemoteWiki(f"http://127.0.0.1:{squatter.port}/{path}")
        with pytest.raises(WikiUnavailable, match=f"held by user {USER}"):
            await wiki.write("page", "a text for our own wiki", "", NICK)
        assert await squatter.heard(tries=1) == b""


async def test_a_squatter_on_one_address_of_localhost_does_not_hide_the_server_on_the_other(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs look at ::1 first, and the server listens on 127.0.0.1."""

    def both(*_: object, **__: object) -> "asyncio.Future[object]":
        found: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        kind = (socket.SOCK_STREAM, 0, "")
        found.set_result([(socket.AF_INET6, *kind, ("::1", port)), (socket.AF_INET, *kind, ("127.0.0.1", port))])
        return found

    async with squatting(monkeypatch, port, host="::1") as squatter, serving(tmp_path, listen=(Listen(port=port),)):
        with monkeypatch.context() as patch:
            patch.setattr(asyncio.get_running_loop(), "getaddrinfo", both)
            _, writer = await dial(Address("localhost", port), ClientIdentity(NICK))
        assert writer.get_extra_info("peername")[0] == "127.0.0.1"
        writer.transport.abort()
        assert await squatter.heard(tries=1) == b""


# The check itself


def test_a_server_that_has_not_accepted_yet_is_known_by_its_listener() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        assert peer_uid.socket_owner(client.getpeername(), client.getsockname()) is None
        check_peer(client)


def test_a_peer_that_closed_at_once_is_not_read() -> None:
    """It has no owner any more, whoever it was; what it sent is there to be read."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        accepted, _ = listener.accept()
        accepted.sendall(GREETING.encode())
        accepted.close()
        listener.close()
        with pytest.raises(ConnectionAbortedError, match="closed the connection at once"):
            check_peer(client)


def test_the_kernel_s_tables_tell_the_same_where_netlink_is_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError

    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        by_netlink = peer_uid._listener_owner(client.getpeername(), "127.0.0.1")
        monkeypatch.setattr(peer_uid, "_by_netlink", forbidden)
        assert by_netlink is not None and peer_uid._listener_owner(client.getpeername(), "127.0.0.1") == by_netlink
        check_peer(client)


def test_another_machine_and_a_system_that_cannot_tell_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_uid, "socket_owner", lambda *_, **_named: pytest.fail("the kernel was asked"))
    monkeypatch.setattr(peer_uid, "_by_netlink", lambda *_: pytest.fail("the kernel was asked"))
    elsewhere = SimpleNamespace(getpeername=lambda: ("192.0.2.1", 6667), getsockname=lambda: ("192.0.2.2", 5))
    check_peer(elsewhere)  # type: ignore[arg-type]
    monkeypatch.setattr(peer_uid, "IS_KNOWN", False)
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        check_peer(client)
