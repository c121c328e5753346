"""What hostile pages, users of the machine, agents and servers tried against the page; each test names the attack."""

import asyncio
import os
import re
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from culture.server.auth.account_store import AccountStore
from culture.server.auth.password import PasswordVerifier
from culture.web import security
from culture.web.database import open_database
from culture.web.login_links import make_link
from culture.web.sessions import BrowserSessions
from culture.web.throttle import TRIES
from culture.web.views.events import MAX_TABS
from culture.web.views.login import local_path
from tests.support.people import verifier
from tests.support.web import Browser, Site, settings_for


async def logged_in(site: Site, account: str) -> Browser:
    """Somebody who has not looked at anything yet: no connection of theirs is there that could be lost."""
    browser, token = site.browser(), make_link(site.settings.folder, account)
    await browser.get(f"/login/{token}")
    assert (await browser.post(f"/login/{token}")).status_code == 303
    return browser


async def test_a_cookie_that_another_port_of_the_machine_was_sent_opens_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Browsers send cookies to all ports of a host: whoever listens on one may be another user of the machine."""
    ori = await logged_in(site, "ori")
    assert (await ori.get("/agents")).status_code == 200
    with monkeypatch.context() as patched:
        patched.setattr(security, "uid_of", lambda client, server: os.getuid() + 4711)
        assert (await ori.get("/agents")).status_code == 303
        assert (await ori.post("/say", room="#general", text="stolen")).status_code == 401
        mallory = await logged_in(site, "ada")
    assert (await mallory.get("/agents")).status_code == 303, "a session that was put into somebody's browser"
    assert (await ori.get("/agents")).status_code == 200


async def test_whoever_is_revoked_reads_nothing_more_also_without_a_connection(site: Site, tmp_path: Path) -> None:
    """The ledger and the wiki are read by the page's own account, so nobody's connection is refused there."""
    ada = await logged_in(site, "ada")
    assert (await ada.get("/questions")).status_code == 200
    accounts = AccountStore(tmp_path / "accounts.json", "spark")
    accounts.revoke("ada")
    for path in ("/questions", "/agents", "/alerts", "/wiki", "/spend", "/team", "/mesh", "/whoami"):
        assert (await ada.get(path)).status_code == 303, path
    accounts.set_password("ada", verifier())
    assert (await ada.get("/questions")).status_code == 303, "let in again, but not with what was stolen before"


async def test_a_new_password_ends_the_sessions_that_the_old_one_made(site: Site, tmp_path: Path) -> None:
    ada = await logged_in(site, "ada")
    assert (await ada.get("/questions")).status_code == 200
    AccountStore(tmp_path / "accounts.json", "spark").set_password(
        "ada", PasswordVerifier.of("another one", iterations=4096)
    )
    assert (await ada.get("/questions")).status_code == 303


def test_links_lead_to_no_name_that_another_user_could_answer(tmp_path: Path) -> None:
    """Browsers look for localhost at ::1 first, and there anybody may listen while the page is at 127.0.0.1."""
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", settings_for(tmp_path, 1).url)
    assert settings_for(tmp_path, 1, host="::1").url == "http://[::1]:0"


async def test_names_that_differ_in_case_are_one_account_to_revoke(site: Site) -> None:
    with open_database(site.settings.folder) as database:
        BrowserSessions(database).start("ORI", "")
        assert BrowserSessions(database).revoke_of("ori") == 1


async def test_what_is_no_request_of_a_browser_is_refused_and_not_a_failure(site: Site) -> None:
    port = site.settings.port
    tries = {
        b"OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n": b"405",
        b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://[\r\nContent-Length: 0\r\n\r\n": b"403",
        b"GET /login HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil\r\n\r\n": b"4",
    }
    for request, status in tries.items():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        answer = await reader.readline()
        writer.close()
        assert answer.split()[1].startswith(status), request


async def test_a_file_that_another_version_left_lets_nobody_in(site: Site) -> None:
    with open_database(site.settings.folder) as database:
        BrowserSessions(database).start("ori", "")
        database.do("PRAGMA user_version = 1")
    with open_database(site.settings.folder) as database:
        assert BrowserSessions(database).all() == []


async def test_passwords_that_are_guessed_all_at_once_are_no_more_guesses(site: Site, tmp_path: Path) -> None:
    quick = PasswordVerifier.of("right", iterations=4096)
    AccountStore(tmp_path / "accounts.json", "spark").set_password("ori", quick)
    browsers = [site.browser() for _ in range(12)]
    for browser in browsers:
        await browser.get("/login")
    tried = await asyncio.gather(
        *(each.post("/login", account="ori", password=f"guess {number}") for number, each in enumerate(browsers))
    )
    assert sorted(answer.status_code for answer in tried) == [403] * TRIES + [429] * (12 - TRIES)


async def test_nobody_has_all_connections_of_the_page(site: Site) -> None:
    ori, ada = await site.browser().come_in("ori"), await site.browser().come_in("ada")
    async with AsyncExitStack() as tabs:
        for _ in range(MAX_TABS):
            await tabs.enter_async_context(ori.listening())
        assert (await ori.get("/events")).status_code == 429
        async with ada.listening():
            pass


async def test_an_invitation_in_which_nobody_can_be_named_is_refused_and_tells_no_log(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    browser, key = site.browser(), "k" * 32
    for account, shown in (("a%20b", key), ("ori", f"{key}%0d%0aQUIT"), ("%3Aori", key)):
        await browser.get(f"/login/invited/{account}/{shown}")
        answer = await browser.post(f"/login/invited/{account}/{shown}", password="x" * 10, again="x" * 10)
        assert answer.status_code in (403, 429) and key not in caplog.text


async def test_behind_the_login_one_comes_to_where_one_wanted_and_to_no_other_site(site: Site) -> None:
    browser = site.browser()
    for path, beyond in {
        "/rooms/%23general?at=x": "/rooms/%23general?at=x",
        "//evil.example": "/",
        "/%2Fevil.example": "/%2Fevil.example",
        "/%5Cevil.example": "/%5Cevil.example",
        "/%0d%0aSet-Cookie:a=b": "/%0d%0aSet-Cookie:a=b",
    }.items():
        sent = await browser.get(f"{site.url}{path}")
        assert sent.status_code == 303
        assert local_path(parse_qs(urlsplit(sent.headers["location"]).query)["next"][0]) == beyond


@pytest.mark.parametrize("account", ["ori\0", "ori\nNICK eve", "ori\0web", "ori eve", "ori\x1b[2J"], ids=ascii)
async def test_names_that_no_line_can_hold_are_refused_at_once_and_in_no_log(
    site: Site, caplog: pytest.LogCaptureFixture, account: str
) -> None:
    browser = site.browser()
    await browser.get("/login")
    assert (await browser.post("/login", account=account, password="x")).status_code == 403
    assert "ori" not in caplog.text
