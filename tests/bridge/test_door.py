"""Who is let through to a bridge at all."""

import os
import re
from pathlib import Path

import httpx2
import pytest

from culture.bridge.access import BridgeAccess
from culture.bridge.settings import BridgeSettings, WrongSetting, from_environment
from culture.config.listen_policy import Tls
from culture.mcp_http import admission
from culture.server.ircd import IRCd
from tests.bridge.conftest import Bridge
from tests.support.tls import client_context, made
from tests.support.waiting import PATIENCE

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream"}
PATHS = [("POST", "/mcp"), ("GET", "/mcp"), ("GET", "/sse"), ("POST", "/messages/"), ("GET", "/nothing")]


@pytest.mark.requirement("N12")
@pytest.mark.requirement("N03", part="the setting is read; there is one transport, so nothing can be swapped yet")
def test_the_environment_says_what_the_founding_text_says() -> None:
    settings = from_environment({})
    assert (settings.transport_type, settings.irc_port, settings.irc_nick) == ("irc", 6667, "mcp-bridge")
    assert (settings.mcp_host, settings.mcp_port) == ("127.0.0.1", 8090)
    said = {"TRANSPORT_TYPE": "irc", "IRC_SERVER": "ergo.lan", "IRC_PORT": "7000", "IRC_NICK": "b", "MCP_PORT": "9"}
    settings = from_environment(said)
    assert (settings.address.host, settings.address.port, settings.irc_nick) == ("ergo.lan", 7000, "b")
    assert settings.mcp_port == 9


def test_every_variable_is_documented() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "bridge" / "overview.md").read_text(encoding="utf-8")
    table = page.partition("## Settings")[2].partition("## ")[0]
    written = {word for row in table.splitlines() for word in re.findall(r"`([A-Z_]+)`", row.partition(" | ")[0])}
    assert written == {name.upper() for name in BridgeSettings.model_fields}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"TRANSPORT_TYPE": "zulip"}, "TRANSPORT_TYPE: 'zulip' is no transport: there is irc"),
        ({"IRC_PORT": "many"}, "IRC_PORT: "),
        ({"IRC_PORT": "70000"}, "IRC_PORT: "),
        ({"IRC_NICK": "a b"}, "IRC_NICK: 'a b' is no nick"),
        ({"IRC_CHANNELS": "general"}, "IRC_CHANNELS: 'general' is not a channel"),
        ({"MCP_PUBLIC_URL": "http://bridge.example.org"}, "MCP_PUBLIC_URL: "),
        ({"MCP_PUBLIC_URL": "https://bridge.example.org/mcp"}, "MCP_PUBLIC_URL: "),
        ({"MCP_TLS_CERT": "/cert.pem"}, "MCP_TLS_CERT and MCP_TLS_KEY go together"),
        ({"TRUSTED_NETWORK": "perhaps"}, "TRUSTED_NETWORK: "),
    ],
    ids=["transport", "port", "large-port", "nick", "channel", "plain-url", "path", "key", "switch"],
)
def test_a_wrong_variable_is_named(said: dict[str, str], told: str) -> None:
    with pytest.raises(WrongSetting, match=re.escape(told)):
        from_environment(said)


@pytest.mark.fault("G4")
@pytest.mark.requirement("N16")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "bridge.example.org", ""])
def test_beyond_loopback_there_is_tls_or_a_network_that_is_trusted(host: str) -> None:
    with pytest.raises(WrongSetting, match="needs TLS"):
        from_environment({"MCP_HOST": host})
    from_environment({"MCP_HOST": host, "TRUSTED_NETWORK": "true"})
    settings = from_environment({"MCP_HOST": host, "MCP_TLS_CERT": "/cert.pem", "MCP_TLS_KEY": "/key.pem"})
    assert settings.is_exposed


@pytest.mark.fault("G4")
async def test_beyond_loopback_tokens_are_needed_though_there_are_none(ircd: IRCd, bridge: Bridge) -> None:
    async with (
        bridge(ircd.port, MCP_HOST="0.0.0.0", TRUSTED_NETWORK="true") as port,
        httpx2.AsyncClient(timeout=PATIENCE) as http,
    ):
        answer = await http.post(f"http://127.0.0.1:{port}/mcp", json=CALL, headers=ACCEPT)
        assert answer.status_code == 401


async def test_over_tls_the_certificate_is_the_one_that_was_given(
    ircd: IRCd, bridge: Bridge, access: BridgeAccess, tmp_path: Path
) -> None:
    files: Tls = made(tmp_path, "localhost")[0]
    _, secret = access.issue(("spark-jules",))
    variables = {"MCP_TLS_CERT": str(files.certificate), "MCP_TLS_KEY": str(files.key)}
    async with (
        bridge(ircd.port, **variables) as port,
        httpx2.AsyncClient(timeout=PATIENCE, verify=client_context(trusted=files.certificate)) as http,
    ):
        headers = {**ACCEPT, "Authorization": f"Bearer {secret}"}
        answer = await http.post(f"https://localhost:{port}/mcp", json=CALL, headers=headers)
        assert answer.status_code == 400, "it is let in, and told that it has no session"


@pytest.mark.fault("G5")
async def test_a_page_elsewhere_reaches_nothing(ircd: IRCd, bridge: Bridge) -> None:
    async with (
        bridge(ircd.port) as port,
        httpx2.AsyncClient(timeout=PATIENCE, base_url=f"http://127.0.0.1:{port}") as http,
    ):
        for headers, status in (
            ({"Host": "evil.example.org"}, 421),
            ({"Host": f"evil.example.org:{port}"}, 421),
            ({"Host": "127.0.0.1.evil.example.org"}, 421),
            ({"Host": "localhost.evil.example.org"}, 421),
            ({"Host": "127.0.0.1@evil.example.org"}, 421),
            ({"Host": "[::1"}, 421),
            ({"Origin": "https://evil.example.org"}, 403),
            ({"Origin": "http://localhost"}, 403),
            ({"Origin": f"http://localhost:{port + 1}"}, 403),
            ({"Origin": "null"}, 403),
            ({"Origin": ""}, 403),
            ({"Origin": "http://["}, 403),
            ({"Host": f"0.0.0.0:{port}"}, 421),
            ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
            ({"Sec-Fetch-Site": "same-site"}, 403),
        ):
            for method, path in PATHS:
                answer = await http.request(method, path, json=CALL, headers={**ACCEPT, **headers})
                assert answer.status_code == status, (headers, path)
        for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
            headers = {**ACCEPT, "Host": host, "Origin": f"http://{host.lower()}"}
            assert (await http.post("/mcp", json=CALL, headers=headers)).status_code == 400


async def test_the_names_of_a_bridge_are_its_own(ircd: IRCd, bridge: Bridge) -> None:
    variables = {"MCP_PUBLIC_URL": "https://bridge.example.org", "MCP_HOSTS": "bridge, bridge.lan"}
    async with bridge(ircd.port, **variables) as port, httpx2.AsyncClient(timeout=PATIENCE) as http:
        for host in ("bridge.example.org", "bridge:8090", "bridge.lan"):
            answer = await http.post(f"http://127.0.0.1:{port}/mcp", json=CALL, headers={**ACCEPT, "Host": host})
            assert answer.status_code == 401


async def test_without_tokens_another_user_of_the_machine_is_refused(
    ircd: IRCd, bridge: Bridge, access: BridgeAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "uid_of", lambda client, server: os.getuid() + 4711)
    async with bridge(ircd.port) as port, httpx2.AsyncClient(timeout=PATIENCE) as http:
        answer = await http.post(f"http://127.0.0.1:{port}/mcp", json=CALL, headers=ACCEPT)
        assert (answer.status_code, "only the user" in answer.text) == (403, True)
    access.issue(("spark-jules",))
    async with bridge(ircd.port) as port, httpx2.AsyncClient(timeout=PATIENCE) as http:
        answer = await http.post(f"http://127.0.0.1:{port}/mcp", json=CALL, headers=ACCEPT)
        assert answer.status_code == 401
