"""A remote program, its owner and the consent page (OAuth)."""

import base64
import hashlib
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from culture.bridge.access import BridgeAccess
from culture.server.ircd import IRCd
from tests.bridge.conftest import Bridge
from tests.bridge.program import Program
from tests.support.client import registered
from tests.support.ports import reserved
from tests.support.waiting import PATIENCE

BACK = "https://claude.ai/api/mcp/auth_callback"
REGISTRATION = {
    "client_name": "<b>Claude</b>",
    "redirect_uris": [BACK],
    "token_endpoint_auth_method": "none",
    "grant_types": ["authorization_code", "refresh_token"],
}


@dataclass
class Memory:
    """What the official client remembers."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Owner:
    """Somebody with a browser, who types a code."""

    def __init__(self, http: httpx2.AsyncClient, access: BridgeAccess, nick: str) -> None:
        self._http, self._access, self._nick = http, access, nick
        self.sent_back = ""

    async def open(self, address: str) -> None:
        """Follow the program's link, and agree."""
        page = await self._http.get(address, follow_redirects=True)
        assert page.status_code == 200
        code = self._access.make_code((self._nick,), ("#general",))
        answer = await self._http.post(
            page.url, data={"request": page.url.params["request"], "answer": "yes", "code": code}
        )
        assert answer.status_code == 303
        self.sent_back = answer.headers["location"]

    async def returned(self) -> AuthorizationCodeResult:
        """What the program is told by that."""
        said = {key: value[0] for key, value in parse_qs(urlsplit(self.sent_back).query).items()}
        return AuthorizationCodeResult(code=said["code"], state=said["state"], iss=said["iss"])


@pytest.mark.requirement("M03", "N16")
async def test_a_remote_program_speaks_when_its_owner_consents(
    ircd: IRCd, bridge: Bridge, access: BridgeAccess
) -> None:
    with reserved() as port:
        url = f"http://127.0.0.1:{port}"
        async with (
            bridge(ircd.port, MCP_PORT=str(port), MCP_PUBLIC_URL=url),
            registered(ircd.port, "spark-ori") as ori,
            httpx2.AsyncClient(timeout=PATIENCE) as browser,
        ):
            await ori.join("#general")
            owner, memory = Owner(browser, access, "spark-ori-delegate"), Memory()
            metadata = OAuthClientMetadata(client_name="Claude", redirect_uris=[AnyUrl(BACK)])
            auth = OAuthClientProvider(f"{url}/mcp", metadata, memory, owner.open, owner.returned)
            async with (
                httpx2.AsyncClient(timeout=PATIENCE, auth=auth) as http,
                Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
            ):
                program = Program(client)
                await program.call("send_message", channel="#general", text="on behalf of ori")
                said = await ori.expect("PRIVMSG", "#general", "on behalf of ori")
                assert said.source.startswith("spark-ori-delegate!")
            (grant,) = access.grants()
            assert (grant.names, bool(grant.client)) == (("spark-ori-delegate",), True)
            assert memory.tokens is not None
            assert memory.tokens.access_token not in access.file.read_text()


@dataclass
class Remote:
    """A program that does it step by step, by hand."""

    http: httpx2.AsyncClient
    url: str
    client: str = ""
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    @property
    def question(self) -> dict[str, str]:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return {
            "response_type": "code",
            "client_id": self.client,
            "redirect_uri": BACK,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
            "state": "xyz",
        }

    async def asks(self, **changes: str) -> httpx2.Response:
        return await self.http.get(f"{self.url}/authorize", params={**self.question, **changes})

    async def request(self) -> str:
        """The id under which it waits for consent."""
        return httpx2.URL((await self.asks()).headers["location"]).params["request"]

    async def answered(self, request: str, code: str, answer: str = "yes") -> httpx2.Response:
        return await self.http.post(f"{self.url}/consent", data={"request": request, "answer": answer, "code": code})

    async def takes(self, **form: str) -> httpx2.Response:
        said = {"grant_type": "authorization_code", "client_id": self.client, "redirect_uri": BACK, **form}
        return await self.http.post(f"{self.url}/token", data=said)


@asynccontextmanager
async def remote(ircd: IRCd, bridge: Bridge) -> AsyncIterator[Remote]:
    with reserved() as port:
        url = f"http://127.0.0.1:{port}"
        async with (
            bridge(ircd.port, MCP_PORT=str(port), MCP_PUBLIC_URL=url),
            httpx2.AsyncClient(timeout=PATIENCE) as http,
        ):
            registered = await http.post(f"{url}/register", json=REGISTRATION)
            assert registered.status_code == 201
            yield Remote(http, url, registered.json()["client_id"])


def code_in(answer: httpx2.Response) -> str:
    return httpx2.URL(answer.headers["location"]).params["code"]


@pytest.mark.requirement("N16")
async def test_a_code_of_the_owner_opens_once_and_only_for_who_asked(
    ircd: IRCd, bridge: Bridge, access: BridgeAccess
) -> None:
    async with remote(ircd, bridge) as program:
        request, typed = await program.request(), access.make_code(("spark-ori-delegate",))
        code = code_in(await program.answered(request, typed))
        assert (await program.answered(request, typed)).status_code == 400, "the question was answered"
        assert (await program.answered(await program.request(), typed)).status_code == 403, "the code was used"
        assert (await program.takes(code=code, code_verifier="x" * 43)).status_code == 400, "PKCE"
        thief = await program.http.post(f"{program.url}/register", json=REGISTRATION)
        stolen = await program.takes(code=code, code_verifier=program.verifier, client_id=thief.json()["client_id"])
        assert stolen.status_code == 400
        elsewhere = await program.takes(code=code, code_verifier=program.verifier, redirect_uri="https://evil.org/")
        assert elsewhere.status_code == 400
        taken = await program.takes(code=code, code_verifier=program.verifier)
        assert taken.status_code == 200
        assert (await program.takes(code=code, code_verifier=program.verifier)).status_code == 400
        token = taken.json()
        renewal = {"grant_type": "refresh_token", "refresh_token": token["refresh_token"]}
        renewed = await program.takes(**renewal)
        assert renewed.status_code == 200
        assert (await program.takes(**renewal)).status_code == 400, "it was used"
        assert access.find(token["access_token"]) is None
        assert access.find(renewed.json()["access_token"]) is not None
        access.revoke("spark-ori-delegate")
        again = await program.takes(grant_type="refresh_token", refresh_token=renewed.json()["refresh_token"])
        assert again.status_code == 400
        assert access.find(renewed.json()["access_token"]) is None


async def test_an_owner_who_refuses_gives_nothing(ircd: IRCd, bridge: Bridge, access: BridgeAccess) -> None:
    async with remote(ircd, bridge) as program:
        answer = await program.answered(await program.request(), access.make_code(("spark-x",)), "no")
        assert "error=access_denied" in answer.headers["location"]
        assert "code=" not in answer.headers["location"]
        assert access.grants() == ()


async def test_codes_are_not_guessed(ircd: IRCd, bridge: Bridge, access: BridgeAccess) -> None:
    async with remote(ircd, bridge) as program:
        request, typed = await program.request(), access.make_code(("spark-x",))
        statuses = [(await program.answered(request, f"WRNG-{number:04}-WRNG")).status_code for number in range(7)]
        assert statuses == [403] * 5 + [400] * 2
        assert (await program.answered(request, typed)).status_code == 400, "the program has to ask anew"
        assert (await program.answered(await program.request(), typed)).status_code == 303


async def test_not_everybody_registers_without_end(ircd: IRCd, bridge: Bridge, access: BridgeAccess) -> None:
    async with remote(ircd, bridge) as program:
        answers = [await program.http.post(f"{program.url}/register", json=REGISTRATION) for _ in range(40)]
        assert [answer.status_code for answer in answers].count(201) < 35
        assert (await program.answered(await program.request(), access.make_code(("spark-x",)))).status_code == 303


async def test_the_page_shows_who_asks_and_cannot_be_framed(ircd: IRCd, bridge: Bridge) -> None:
    async with remote(ircd, bridge) as program:
        page = await program.http.get(f"{program.url}/consent", params={"request": await program.request()})
        assert "&lt;b&gt;Claude&lt;/b&gt;" in page.text
        assert "https://claude.ai" in page.text
        assert not re.search(r"<script|http-equiv", page.text)
        assert page.headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
        assert (await program.http.get(f"{program.url}/consent?request=x")).status_code == 400
        elsewhere = {"Origin": "https://evil.org"}
        assert (await program.http.post(f"{program.url}/consent", data={}, headers=elsewhere)).status_code == 403


async def test_a_program_is_sent_back_only_where_it_is_safe(ircd: IRCd, bridge: Bridge) -> None:
    async with remote(ircd, bridge) as program:
        for uri in ("http://evil.example.org/", "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd"):
            answer = await program.http.post(f"{program.url}/register", json={**REGISTRATION, "redirect_uris": [uri]})
            assert answer.status_code == 400
        for uri in ("http://localhost:8787/callback", "cursor://anysphere.cursor-mcp/oauth/callback"):
            answer = await program.http.post(f"{program.url}/register", json={**REGISTRATION, "redirect_uris": [uri]})
            assert answer.status_code == 201
        assert (await program.asks(redirect_uri="https://evil.example.org/")).status_code == 400
        assert "error=invalid_target" in (await program.asks(resource="https://evil.org/mcp")).headers["location"]
        plain = await program.asks(code_challenge_method="plain")
        assert "error=invalid_request" in plain.headers["location"]


async def test_the_page_cannot_name_another_place_than_where_one_is_sent(ircd: IRCd, bridge: Bridge) -> None:
    async with remote(ircd, bridge) as program:
        said = {**REGISTRATION, "redirect_uris": ["https://claude.ai@evil.example.org/"]}
        assert (await program.http.post(f"{program.url}/register", json=said)).status_code == 400


async def test_whoever_only_asks_fills_neither_disk_nor_memory(
    ircd: IRCd, bridge: Bridge, access: BridgeAccess
) -> None:
    async with remote(ircd, bridge) as program:
        before = access.file.stat()
        long = {**REGISTRATION, "client_name": "x" * 500_000}
        assert (await program.http.post(f"{program.url}/register", json=long)).status_code == 400
        asked = await program.http.post(f"{program.url}/authorize", data={**program.question, "state": "x" * 20_000})
        assert "error=invalid_request" in asked.headers["location"][:2000]
        assert (await program.answered(await program.request(), "WRNG-WRNG-WRNG")).status_code == 403
        assert access.file.stat().st_mtime_ns == before.st_mtime_ns, "nothing was written"


async def test_a_program_that_asks_all_the_time_pushes_nobody_aside(
    ircd: IRCd, bridge: Bridge, access: BridgeAccess
) -> None:
    async with remote(ircd, bridge) as program:
        waits = await program.request()
        other = await program.http.post(f"{program.url}/register", json=REGISTRATION)
        flood = Remote(program.http, program.url, other.json()["client_id"])
        requests = [await flood.request() for _ in range(30)]
        gone = [(await flood.answered(request, "", "no")).status_code for request in requests]
        assert gone == [400] * 10 + [303] * 20
        assert (await program.answered(waits, access.make_code(("spark-x",)))).status_code == 303


async def test_what_is_taken_back_before_the_program_comes_for_it_opens_nothing(
    ircd: IRCd, bridge: Bridge, access: BridgeAccess
) -> None:
    async with remote(ircd, bridge) as program:
        code = code_in(await program.answered(await program.request(), access.make_code(("spark-x",))))
        assert access.grants() == ()
        assert access.revoke("spark-x") == 1
        assert (await program.takes(code=code, code_verifier=program.verifier)).status_code == 400
        assert access.grants() == ()


async def test_a_program_gives_its_token_back(ircd: IRCd, bridge: Bridge, access: BridgeAccess) -> None:
    async with remote(ircd, bridge) as program:
        code = code_in(await program.answered(await program.request(), access.make_code(("spark-x",))))
        token = (await program.takes(code=code, code_verifier=program.verifier)).json()["access_token"]
        thief = (await program.http.post(f"{program.url}/register", json=REGISTRATION)).json()["client_id"]
        for client, left in ((thief, 1), (program.client, 0)):
            form = {"client_id": client, "client_secret": "", "token": token}  # the SDK wants one, be it empty
            assert (await program.http.post(f"{program.url}/revoke", data=form)).status_code == 200
            assert len(access.grants()) == left
