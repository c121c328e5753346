"""Tokens: who is let in, as whom, and what they may read."""

import stat
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from mcp import Client as MCPClient

from culture.bridge.access import ACCESS_LIFETIME, CODE_LIFETIME, DAY, LIFETIME, BridgeAccess, BrokenAccessFile
from culture.bridge.bearer_tokens import caller_of
from culture.bridge.client import BridgeClient
from culture.bridge.settings import from_environment
from culture.bridge.tools import build
from culture.protocol.vocabulary import UserClass
from culture.server.auth.accounts import new_account
from culture.server.ircd import IRCd
from tests.bridge.conftest import Bridge
from tests.bridge.program import Program, Refused, over_http, over_sse
from tests.support.client import Client, registered
from tests.support.clock import Clock
from tests.support.people import accounts_of
from tests.support.servers import serving
from tests.support.waiting import PATIENCE

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.mark.fault("G1")
async def test_without_a_token_that_holds_nothing_is_told(ircd: IRCd, bridge: Bridge, access: BridgeAccess) -> None:
    _, old = access.issue(("spark-old",), lifetime=-1.0)
    _, gone = access.issue(("spark-gone",))
    _, good = access.issue(("spark-jules",))
    access.revoke("spark-gone")
    async with (
        bridge(ircd.port) as port,
        httpx2.AsyncClient(timeout=PATIENCE, base_url=f"http://127.0.0.1:{port}") as http,
    ):
        for headers in (
            {},
            {"Authorization": ""},
            {"Authorization": "Bearer"},
            {"Authorization": "Bearer cbt_wrong"},
            {"Authorization": f"Bearer {old}"},
            {"Authorization": f"Bearer {gone}"},
            {"Authorization": f"Basic {good}"},
            {"Authorization": f"Bearer {good}x"},
            {"X-Token": good},
        ):
            for method, path in (("POST", "/mcp"), ("GET", "/mcp"), ("GET", "/sse"), ("POST", "/messages/")):
                answer = await http.request(method, path, json=CALL, headers={**ACCEPT, **headers})
                assert answer.status_code == 401
                assert not any(word in answer.text for word in ("spark", "jules", "send_message", "general"))
        answer = await http.post(f"/mcp?token={good}", json=CALL, headers=ACCEPT)
        assert answer.status_code == 401, "a token in an address is in the logs of every proxy"


@pytest.mark.fault("G2")
@pytest.mark.requirement("N13")
@pytest.mark.parametrize("way", [over_http, over_sse], ids=["http", "sse"])
async def test_the_sender_is_the_identity_of_the_token(
    ircd: IRCd, bridge: Bridge, access: BridgeAccess, way: object
) -> None:
    _, secret = access.issue(("spark-jules", "spark-ramona"))
    async with bridge(ircd.port) as port, registered(ircd.port, "spark-ori") as ori, way(port, secret) as program:  # type: ignore[operator]
        await ori.join("#general")
        for sender in (None, "Jules", "RAMONA"):
            more = {} if sender is None else {"sender": sender}
            await program.call("send_message", channel="#general", text="hello", **more)
        sources = [message.source.partition("!")[0] for message in await ori.sync() if message.verb == "PRIVMSG"]
        assert sources == ["spark-jules", "spark-jules", "spark-ramona"]
        for sender in ("ori", "spark-mcp-bridge", "somebody"):
            with pytest.raises(Refused, match="does not speak for"):
                await program.call("send_message", channel="#general", text="hello", sender=sender)
        assert [message for message in await ori.sync() if message.verb == "PRIVMSG"] == []


@dataclass
class Scene:
    """A server with what is nobody else's business, and a bridge with tokens."""

    port: int
    tokens: dict[str, str]
    watcher: Client


@pytest.fixture
async def scene(tmp_path: Path, bridge: Bridge, access: BridgeAccess, secrets: dict[str, str]) -> AsyncIterator[Scene]:
    accounts = accounts_of(tmp_path, "ori")
    accounts.add(new_account("daemon", UserClass.AGENT, always_on=True))
    secrets["spark-ori"] = accounts.add_token("ori", "person")
    tokens = {
        "jules": access.issue(("spark-jules",), ("#general",))[1],
        "ramona": access.issue(("spark-ramona", "spark-second"), ("#general",))[1],
        "ori": access.issue(("spark-ori",), ("#general",))[1],
        "daemon": access.issue(("spark-daemon",), ("#general",))[1],
        "bridge": access.issue(("spark-mcp-bridge",), ("#general",))[1],
    }
    async with (
        serving(tmp_path / "server", accounts_file=accounts.path) as ircd,
        registered(ircd.port, "spark-watch") as watcher,
        bridge(ircd.port) as port,
    ):
        for line in (
            "JOIN #general",
            "JOIN #secret",
            "MODE #secret +s",
            "PRIVMSG #secret :the secret plan",
            "JOIN #invited",
            "MODE #invited +i",
            "PRIVMSG #invited :the secret plan",
            "JOIN #keyed",
            "MODE #keyed +k hunter2",
            "PRIVMSG #keyed :the secret plan",
            "JOIN #open",
            "PRIVMSG #open :the secret plan",
            "JOIN #banned",
            "MODE #banned +b spark-jules!*@*",
            "PRIVMSG #banned :the secret plan",
        ):
            await watcher.ask(line)
        yield Scene(port, tokens, watcher)


SAY = {"channel": "#general", "text": "x"}
ATTEMPTS = [
    ("speak as a person who is away", "jules", "send_message", {**SAY, "sender": "ori"}, "does not speak for ori"),
    ("as one who is on line", "jules", "send_message", {**SAY, "sender": "watch"}, "does not speak for watch"),
    ("as the bridge", "jules", "send_message", {**SAY, "sender": "mcp-bridge"}, "does not speak for mcp-bridge"),
    ("as another token's nick", "jules", "send_message", {**SAY, "sender": "ramona"}, "does not speak for ramona"),
    ("as another's second nick", "jules", "send_message", {**SAY, "sender": "second"}, "does not speak for second"),
    ("in capitals", "jules", "send_message", {**SAY, "sender": "SPARK-RAMONA"}, "does not speak for SPARK-RAMONA"),
    ("with a mask", "jules", "send_message", {**SAY, "sender": "jules!ori@host"}, "not a nick"),
    ("as everybody", "jules", "send_message", {**SAY, "sender": "all"}, "not a nick"),
    ("as the server", "jules", "send_message", {**SAY, "sender": "spark"}, "does not speak for spark"),
    ("with a person's password", "ori", "send_message", SAY, "is not of class agent"),
    ("as an agent with an account", "daemon", "send_message", SAY, "somebody else"),
    ("with a token for the bridge's nick", "bridge", "send_message", SAY, "does not speak for spark-mcp-bridge"),
    ("read a channel one is not in", "jules", "read_messages", {"channel": "#open"}, "is not in #open"),
    ("read a secret channel", "jules", "read_messages", {"channel": "#secret"}, "is not in #secret"),
    ("come into an invite-only one", "jules", "create_channel", {"name": "#invited"}, "(+i)"),
    ("come into one with a key", "jules", "create_channel", {"name": "#keyed"}, "(+k)"),
    ("come into one where one is banned", "jules", "create_channel", {"name": "#banned"}, "(+b)"),
    ("say something there", "jules", "send_message", {"channel": "#banned", "text": "x"}, "(+b)"),
    ("read somebody's private messages", "jules", "read_messages", {"channel": "spark-ramona"}, "is not a channel"),
    (
        "read as another",
        "jules",
        "read_messages",
        {"channel": "#general", "sender": "ramona"},
        "does not speak for ramona",
    ),
    ("see who is in a channel one is not in", "jules", "get_members", {"channel": "#secret"}, "is not in #secret"),
    ("list what another sees", "jules", "list_channels", {"sender": "ramona"}, "does not speak for ramona"),
    ("two channels at once", "jules", "read_messages", {"channel": "#general,#secret"}, "is not a channel"),
    ("write in private", "jules", "send_message", {"channel": "spark-watch", "text": "x"}, "is not a channel"),
]


@pytest.mark.fault("G2", "G3")
async def test_every_attempt_to_be_somebody_else_or_to_read_what_one_may_not_is_refused(scene: Scene) -> None:
    assert len(ATTEMPTS) >= 20
    await scene.watcher.sync()
    for what, token, tool, arguments, reason in ATTEMPTS:
        async with over_http(scene.port, scene.tokens[token]) as program:
            with pytest.raises(Refused) as refused:
                await program.call(tool, **arguments)
            assert reason in str(refused.value), what
            assert "secret plan" not in str(refused.value), what
    seen = await scene.watcher.sync()
    assert [message for message in seen if message.verb == "PRIVMSG"] == []
    # The bridge itself comes when it is ready, which may be after the first look.
    comers = {message.source.partition("!")[0] for message in seen if message.verb == "JOIN"}
    assert comers - {"spark-mcp-bridge"} == {"spark-jules"}
    async with over_http(scene.port, scene.tokens["jules"]) as program:
        assert "#secret" not in await program.call("list_channels")


@pytest.mark.fault("G3")
async def test_a_token_reads_where_its_nick_is(scene: Scene) -> None:
    await scene.watcher.ask("PRIVMSG #general :for all who are here")
    async with over_http(scene.port, scene.tokens["jules"]) as program:
        found = (await program.call("read_messages", channel="#general"))["messages"]
        assert [each["text"] for each in found] == ["for all who are here"]
        await scene.watcher.ask("INVITE spark-jules #invited")
        await program.call("create_channel", name="#invited")
        found = (await program.call("read_messages", channel="#invited"))["messages"]
        assert [each["text"] for each in found] == ["the secret plan"]
        await scene.watcher.ask("KICK #invited spark-jules")
        with pytest.raises(Refused, match="is not in #invited"):
            await program.call("read_messages", channel="#invited")


async def test_a_session_is_of_the_token_that_opened_it(ircd: IRCd, bridge: Bridge, access: BridgeAccess) -> None:
    own, other = (access.issue((nick,))[1] for nick in ("spark-jules", "spark-imp"))
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    }
    async with (
        bridge(ircd.port) as port,
        httpx2.AsyncClient(timeout=PATIENCE, base_url=f"http://127.0.0.1:{port}") as http,
    ):
        begun = await http.post("/mcp", json=hello, headers={**ACCEPT, "Authorization": f"Bearer {own}"})
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"], **ACCEPT}
        for token, status in ((other, 404), (own, 200)):
            headers = {**session, "Authorization": f"Bearer {token}"}
            assert (await http.post("/mcp", json=CALL, headers=headers)).status_code == status
        access.revoke("spark-jules")
        headers = {**session, "Authorization": f"Bearer {own}"}
        assert (await http.post("/mcp", json=CALL, headers=headers)).status_code == 401


async def test_an_agent_with_a_login_is_of_its_class(
    tmp_path: Path, bridge: Bridge, access: BridgeAccess, secrets: dict[str, str]
) -> None:
    accounts = accounts_of(tmp_path, "ori")
    accounts.add(new_account("ori-delegate", UserClass.AGENT, always_on=True))
    secrets["spark-ori-delegate"] = accounts.add_token("ori-delegate", "daemon")
    _, token = access.issue(("spark-ori-delegate",), ("#general",))
    async with (
        serving(tmp_path / "server", accounts_file=accounts.path) as ircd,
        registered(ircd.port, "spark-watch") as watcher,
        bridge(ircd.port) as port,
        over_http(port, token) as program,
    ):
        await watcher.join("#general")
        await program.call("send_message", channel="#general", text="on behalf of ori", sender="ORI-delegate")
        await watcher.expect("PRIVMSG", "#general", "on behalf of ori")
        found = (await program.call("read_messages", channel="#general"))["messages"][0]
        assert (found["sender"], found["class"], found["human"]) == ("spark-ori-delegate", "agent", False)
        lines = {line.verb: line.params[-1] for line in await watcher.ask("WHOIS spark-ori-delegate")}
        assert lines["335"] == "is an agent"
        assert lines["311"].endswith("via spark-mcp-bridge")


def test_the_file_is_private_and_holds_no_secret(access: BridgeAccess) -> None:
    _, secret = access.issue(("spark-jules",))
    code = access.make_code(("spark-jules",))
    text = access.file.read_text()
    assert secret not in text
    assert secret.removeprefix("cbt_") not in text
    assert code.replace("-", "") not in text
    assert stat.S_IMODE(access.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(access.file.parent.stat().st_mode) == 0o700


def test_tokens_end_and_are_forgotten(tmp_path: Path, clock: Clock) -> None:
    access = BridgeAccess(tmp_path / "access.json", clock)
    grant, secret = access.issue(("spark-jules",), lifetime=DAY)
    assert access.find(secret) == grant
    clock.now += DAY
    assert access.find(secret) is None
    assert access.grants() == (grant,)
    clock.now += LIFETIME
    access.issue(("spark-other",))
    assert [each.names for each in access.grants()] == [("spark-other",)]


def test_a_code_is_good_once_and_not_for_long(tmp_path: Path, clock: Clock) -> None:
    access = BridgeAccess(tmp_path / "access.json", clock)
    first, second = access.make_code(("spark-jules",)), access.make_code(("spark-ramona",))
    assert access.find(first) is None, "a code is no token"
    used = access.redeem(f" {first.lower()} ")
    assert used is not None
    assert used.names == ("spark-jules",)
    assert access.redeem(first) is None
    clock.now += CODE_LIFETIME
    assert access.redeem(second) is None


def test_the_next_token_ends_the_one_before(tmp_path: Path, clock: Clock) -> None:
    access = BridgeAccess(tmp_path / "access.json", clock)
    consented = access.redeem(access.make_code(("spark-jules",), ("#general",)))
    assert consented is not None
    made = access.open(consented, "client")
    assert made is not None
    token, renewal = made
    known = access.refreshable(renewal, "client")
    assert known is not None
    assert access.refreshable(renewal, "another") is None
    renewed = access.renew(known)
    assert renewed is not None
    assert access.renew(known) is None
    assert access.find(token) is None
    shown = access.find(renewed[0])
    assert shown is not None
    assert shown.caller.channels == ("#general",)
    clock.now += ACCESS_LIFETIME
    assert access.find(renewed[0]) is None


@pytest.mark.parametrize(("renewals", "later", "holds"), [(1, 30.0, True), (1, 61.0, False), (2, 0.0, False)])
def test_a_renewal_that_was_stolen_ends_the_token(
    tmp_path: Path, clock: Clock, renewals: int, later: float, holds: bool
) -> None:
    """The program or the thief shows it a second time, and nobody knows which; a lost answer is no theft."""
    access = BridgeAccess(tmp_path / "access.json", clock)
    consented = access.redeem(access.make_code(("spark-jules",)))
    assert consented is not None
    made = access.open(consented, "client")
    assert made is not None
    first = renewal = made[1]
    for _ in range(renewals):
        known = access.refreshable(renewal, "client")
        assert known is not None
        renewed = access.renew(known)
        assert renewed is not None
        renewal = renewed[1]
    clock.now += later
    assert access.end_stolen(first, "another") is None
    assert access.end_stolen("made up", "client") is None
    assert (access.end_stolen(first, "client") is None) is holds
    assert (access.refreshable(renewal, "client") is not None) is holds


def test_looking_in_vain_changes_nothing(access: BridgeAccess) -> None:
    """A bridge without tokens stays one."""
    assert access.revoke("nobody") == 0
    assert access.redeem("WRNG-WRNG-WRNG") is None
    assert not access.exists


def test_a_code_that_waits_is_taken_back_with_the_nick(access: BridgeAccess) -> None:
    code = access.make_code(("spark-jules",))
    assert access.revoke("SPARK-jules") == 1
    assert access.redeem(code) is None


def test_two_processes_see_each_others_changes(tmp_path: Path) -> None:
    one, other = BridgeAccess(tmp_path / "access.json"), BridgeAccess(tmp_path / "access.json")
    _, secret = one.issue(("spark-jules",))
    assert other.find(secret) is not None
    assert other.revoke("spark-jules") == 1
    assert one.find(secret) is None
    assert one.exists, "once there were tokens nobody comes in without"


def test_a_file_that_makes_no_sense_lets_nobody_in(tmp_path: Path) -> None:
    file = tmp_path / "access.json"
    file.write_text("{")
    with pytest.raises(BrokenAccessFile):
        BridgeAccess(file).find("cbt_x")


async def test_where_tokens_count_a_call_without_one_is_not_done(ircd: IRCd) -> None:
    """By whatever way it came: it is not the call of a program of this user."""
    bridge_client = BridgeClient(
        from_environment({"IRC_SERVER": "127.0.0.1", "IRC_PORT": str(ircd.port)}), lambda _: None
    )
    async with bridge_client.running(), MCPClient(build(bridge_client, caller_of=caller_of)) as client:
        with pytest.raises(Refused, match="nobody has shown a token"):
            await Program(client).call("list_channels")


async def test_the_first_token_closes_a_bridge_that_runs_without(
    ircd: IRCd, bridge: Bridge, access: BridgeAccess
) -> None:
    async with bridge(ircd.port) as port, over_http(port) as program:
        await program.call("list_channels")
        access.issue(("spark-jules",))
        async with httpx2.AsyncClient(timeout=PATIENCE) as http:
            answer = await http.post(f"http://127.0.0.1:{port}/mcp", json=CALL, headers=ACCEPT)
            assert (answer.status_code, answer.text) == (401, "there are tokens now: restart the bridge")


async def test_a_program_without_a_token_is_told_how_one_is_made(
    ircd: IRCd, bridge: Bridge, access: BridgeAccess
) -> None:
    """Claude Code shows what it gets where it tries to register itself."""
    access.issue(("spark-jules",))
    async with bridge(ircd.port) as port, httpx2.AsyncClient(timeout=PATIENCE) as http:
        answer = await http.post(f"http://127.0.0.1:{port}/register", json={})
        assert (answer.status_code, "culture bridge token add NICK" in answer.text) == (404, True)


async def test_with_a_broken_file_nobody_is_let_in(ircd: IRCd, bridge: Bridge, access: BridgeAccess) -> None:
    _, secret = access.issue(("spark-jules",))
    async with bridge(ircd.port) as port, httpx2.AsyncClient(timeout=PATIENCE) as http:
        access.file.write_text("{")
        headers = {**ACCEPT, "Authorization": f"Bearer {secret}"}
        assert (await http.post(f"http://127.0.0.1:{port}/mcp", json=CALL, headers=headers)).status_code == 401


async def test_the_bridge_itself_is_nobody_either(tmp_path: Path, bridge: Bridge, secrets: dict[str, str]) -> None:
    accounts = accounts_of(tmp_path, "ori")
    secrets["ori"] = accounts.add_token("ori", "person")
    async with (
        serving(tmp_path / "server", accounts_file=accounts.path) as ircd,
        registered(ircd.port, "spark-watch") as watcher,
        bridge(ircd.port, IRC_NICK="ori") as port,
        over_http(port) as program,
    ):
        await watcher.join("#general")
        with pytest.raises(Refused, match="the account ori is not of class agent"):
            await program.call("send_message", channel="#general", text="hello")
        assert [line for line in await watcher.sync() if line.verb == "JOIN"] == []
