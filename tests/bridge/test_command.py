"""``culture bridge`` as people type it."""

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from culture.bridge.access import BridgeAccess
from culture.cli.agents.agent_login import store_token
from culture.cli.bridge import login_of
from culture.clients.shared.pidfile import daemon_file
from culture.protocol.vocabulary import Exit
from culture.server.auth.account_store import AccountStore
from tests.bridge.program import over_http
from tests.cli.shell import Shell, said_port
from tests.support.client import registered
from tests.support.ports import reserved
from tests.support.waiting import PATIENCE


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    session = Shell(tmp_path)
    yield session
    await session.close()


@pytest.mark.requirement("N12")
async def test_tokens_are_made_shown_used_and_taken_back(shell: Shell) -> None:
    _, irc_port = await shell.serve("--name", "spark")
    shell.write(f"server: {{host: 127.0.0.1, port: {irc_port}}}\nagents: []\n", "agents.yaml")
    made = await shell.run("bridge", "token", "add", "delegate", "--also", "second", "--channel", "#general")
    assert made.code == Exit.DONE, made.err
    secret = made.out.strip()
    assert "speaks as spark-delegate, and as spark-second, is in #general, until" in made.err
    accounts = AccountStore(shell.home / "accounts.json", "spark")
    account = accounts.get("delegate")
    assert account is not None
    assert account.kind == "agent"
    listed = await shell.run("bridge", "token", "list")
    assert "spark-delegate" in listed.out
    assert secret not in listed.out
    shell.environment = {"IRC_SERVER": "127.0.0.1", "IRC_PORT": str(irc_port), "MCP_PORT": "0"}
    bridge = await shell.spawn("bridge", "serve")
    port = said_port((await bridge.until("MCP at")).partition("/mcp")[0])
    async with registered(irc_port, "spark-ori") as ori:
        await ori.join("#general")
        async with over_http(port, secret) as program:
            await program.call("send_message", channel="#general", text="good morning")
            await ori.expect("PRIVMSG", "#general", "good morning")
            found = (await program.call("read_messages", channel="#general"))["messages"]
            assert (found[0]["sender"], found[0]["class"]) == ("spark-delegate", "agent")
    asked = await shell.run("bridge", "token", "revoke", "second")
    assert (asked.code, "another's token and speaks as spark-delegate, and as spark-second" in asked.err) == (1, True)
    assert (await shell.run("bridge", "token", "revoke", "delegate")).out == "1 revoked.\n"
    async with httpx2.AsyncClient(timeout=PATIENCE) as http:
        headers = {"Authorization": f"Bearer {secret}"}
        assert (await http.post(f"http://127.0.0.1:{port}/mcp", json={}, headers=headers)).status_code == 401
    bridge.signal(signal.SIGTERM)
    assert await bridge.ended() == Exit.DONE
    assert secret not in bridge.said
    assert (await shell.run("bridge", "token", "revoke", "nobody")).code == Exit.FAILED


async def test_a_code_is_printed_for_the_consent_page(shell: Shell) -> None:
    made = await shell.run("bridge", "token", "code", "delegate")
    assert made.code == Exit.DONE, made.err
    grant = BridgeAccess(shell.home / "bridge" / "access.json").redeem(made.out.strip())
    assert grant is not None
    assert grant.names == ("delegate",)


@pytest.mark.fault("G4")
async def test_what_cannot_be_is_said_before_anything_starts(shell: Shell) -> None:
    refused = await shell.run("bridge", "serve", "--host", "0.0.0.0")
    assert (refused.code, "needs TLS" in refused.err) == (Exit.WRONG_CONFIGURATION, True)
    shell.environment = {"TRANSPORT_TYPE": "matrix"}
    refused = await shell.run("bridge", "stdio")
    assert (refused.code, "there is irc" in refused.err) == (Exit.WRONG_CONFIGURATION, True)


async def test_a_persons_nick_and_an_agents_are_not_given_away(shell: Shell) -> None:
    agents = "agents: [{nick: spark-build, directory: /tmp, channels: [], agent: scripted}]\n"
    with reserved() as port:
        shell.write(f"name: spark\nlisten: [{{host: 127.0.0.1, port: {port}}}]\n")
        shell.write(f"server: {{host: 127.0.0.1, port: {port}}}\n{agents}", "agents.yaml")
        assert (await shell.run("account", "add", "ori", "--no-password")).code == Exit.DONE
        for nick, told in (
            ("ori", "the nick of the human account ori"),
            ("build", "an agent with a daemon of its own"),
        ):
            refused = await shell.run("bridge", "token", "add", nick)
            assert (refused.code, told in refused.err) == (Exit.FAILED, True), refused.err
        refused = await shell.run("bridge", "token", "add", "human")
        assert refused.code == Exit.USAGE
    assert not (shell.home / "bridge" / "access.json").exists()


async def test_the_nick_of_a_daemon_is_the_daemons(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of one that came after the token, and of a team's member, which no file lists."""
    monkeypatch.setenv("CULTURE_HOME", str(shell.home))
    store_token("spark-ramona", "its-token")
    assert login_of("spark-ramona") == "its-token"
    daemon = daemon_file("spark-ramona")
    daemon.acquire()
    try:
        assert (login_of("spark-ramona"), login_of("Spark-Ramona")) == (None, None)
        refused = await shell.run("bridge", "token", "add", "spark-ramona")
        assert (refused.code, "an agent with a daemon of its own" in refused.err) == (Exit.FAILED, True), refused.err
    finally:
        daemon.release()
