"""Attempts to get at what is not one's own: all are refused."""

import re
from pathlib import Path

import httpx
import pytest
from starlette.routing import Route

from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.ircd import IRCd
from culture.web.database import open_database
from culture.web.login_links import LoginLinks
from culture.web.security import OPEN, OPEN_BELOW
from culture.web.sessions import BrowserSessions
from culture.web.throttle import LoginThrottle
from culture.web.view import all_views
from culture.web.views.login import local_path
from tests.support.client import connected
from tests.support.clock import Clock
from tests.support.people import PASSWORD, authenticate, come_in, plain
from tests.support.waiting import until
from tests.support.web import Browser, Site, settings_for, site_for, texts

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>"


def routes() -> list[tuple[str, str]]:
    """Every route of every page, as somebody would try it."""
    every = [route for view in all_views() for route in view.routes if isinstance(route, Route)]
    return sorted(
        (method, re.sub(r"\{[^}]+\}", "x", route.path))
        for route in every
        for method in route.methods or ()
        if method != "HEAD"
    )


async def test_without_a_login_nothing_is_there_but_the_way_in(site: Site) -> None:
    browser = site.browser()
    await browser.get("/login")
    for method, path in [*routes(), ("GET", "/no/such/page")]:
        if path in OPEN or path.startswith(OPEN_BELOW):
            continue
        tried = await (browser.get(path) if method == "GET" else browser.post(path))
        assert tried.status_code in (401, 303), (method, path)
        assert tried.headers.get("location", "/login").startswith("/login"), (method, path)
        assert tried.text in ("", "log in first\n"), (method, path)
    for path in ("/static/app.js", "/static/style.css", "/vendor/htmx.min.js", "/manifest.webmanifest", "/sw.js"):
        assert (await browser.get(path)).status_code == 200, path
    for path in ("/static/../app.py", "/static/..%2fapp.py", "/vendor/README.md", "/static/.hidden"):
        assert (await browser.get(path)).status_code in (303, 404), path


async def test_a_session_that_is_made_up_or_over_or_revoked_opens_nothing(site: Site) -> None:
    ori = await site.browser().come_in("ori")
    name, cookie = next(iter(ori.client.cookies.items()))
    for wrong in ("x", cookie[:-1], cookie + "x", "' OR 1=1 --", ""):
        stranger = site.browser()
        tried = await stranger.get("/rooms", Cookie=f'{name}="{wrong}"')
        assert tried.status_code == 303, wrong
    with open_database(site.settings.folder) as database:
        assert cookie not in str(database.ask("SELECT * FROM sessions"))
        (session,) = BrowserSessions(database).all("ori")
        database.do("UPDATE sessions SET ends = 1")
        assert (await ori.get("/rooms")).status_code == 303
        assert BrowserSessions(database).find(cookie) is None
        database.do("UPDATE sessions SET ends = 1e12")
        assert (await ori.get("/rooms")).status_code == 200
        assert BrowserSessions(database).revoke(session.id)
    assert (await ori.get("/rooms")).status_code == 303


async def test_each_login_is_a_new_session_and_the_way_out_ends_it(site: Site) -> None:
    browser = site.browser()
    await browser.get("/login")
    before = dict(browser.client.cookies)
    await browser.log_in("ori")
    during = dict(browser.client.cookies)
    assert set(before) == set(during) and before != during
    assert (await browser.post("/logout")).status_code == 303
    browser.client.cookies.update(during)
    assert (await browser.get("/rooms")).status_code == 303


async def foreign_forms(browser: Browser) -> dict[str, httpx.Response]:
    """The same form, as others would send it."""
    own = str(browser.client.base_url).rstrip("/")
    port = own.rpartition(":")[2]
    origins = {
        "another site": "https://evil.example",
        "another port": "http://127.0.0.1:1",
        "another scheme": f"capacitor://127.0.0.1:{port}",
        "a name like ours": f"http://127.0.0.1.evil.example:{port}",
        "a frame without an origin": "null",
        "no origin": "",
    }
    found = {}
    for who, origin in origins.items():
        found[who] = await browser.post("/say", {"Origin": origin}, room="#general", text="forged")
    found["another site, by its own word"] = await browser.post(
        "/say", {"Origin": own, "Sec-Fetch-Site": "cross-site"}, room="#general", text="forged"
    )
    right, browser.csrf = browser.csrf, "0" * 64
    found["a wrong token"] = await browser.post("/say", room="#general", text="forged")
    browser.csrf = ""
    found["no token"] = await browser.post("/say", room="#general", text="forged")
    browser.csrf = right
    found["json"] = await browser.client.post(
        "/say",
        json={"csrf": right, "room": "#general", "text": "forged"},
        headers={"Origin": own, "X-CSRF-Token": right},
    )
    found["in the address"] = await browser.get("/say?room=%23general&text=forged")
    return found


async def test_a_form_that_is_not_ours_says_nothing(site: Site) -> None:
    ori, ada = await site.browser().come_in("ori"), await site.browser().come_in("ada")
    tried = await foreign_forms(ori)
    assert {who: answer.status_code for who, answer in tried.items()} == {
        "another site": 403,
        "another port": 403,
        "another scheme": 403,
        "a name like ours": 403,
        "a frame without an origin": 403,
        "no origin": 403,
        "another site, by its own word": 403,
        "a wrong token": 403,
        "no token": 403,
        "json": 415,
        "in the address": 405,
    }
    ori.csrf, own = ada.csrf, ori.csrf
    assert (await ori.post("/say", room="#general", text="forged")).status_code == 403
    ori.csrf = own
    assert (await ori.post("/say", room="#general", text="mine")).status_code == 303
    assert texts((await ada.get("/rooms/%23general")).text) == ["mine"]


async def test_a_login_cannot_be_forged_either(site: Site) -> None:
    """Or somebody would speak as the one who sent them the form."""
    browser = site.browser()
    await browser.get("/login")
    origin = {"Origin": "https://evil.example"}
    assert (await browser.post("/login", origin, account="ori", password=PASSWORD)).status_code == 403
    browser.csrf = "0" * 64
    assert (await browser.post("/login", account="ori", password=PASSWORD)).status_code == 403


async def test_a_name_that_is_not_ours_leads_nowhere(site: Site) -> None:
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::1", "a b"):
        assert (await site.browser().get("/login", Host=host)).status_code in (400, 421), host


async def test_the_name_that_people_use_is_ours_and_cookies_are_for_tls_then(tmp_path: Path, ircd: IRCd) -> None:
    async with site_for(settings_for(tmp_path, ircd.port, url="https://chat.example.org")) as site:
        browser = site.browser()
        answer = await browser.get("/login", Host="chat.example.org")
        assert answer.status_code == 200
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-culture_")
        assert {"Secure", "HttpOnly", "Path=/", "SameSite=lax"} <= set(cookie.split("; "))
        assert "max-age" in answer.headers["strict-transport-security"]


async def test_a_page_under_https_takes_no_form_from_the_same_name_without_tls(tmp_path: Path, ircd: IRCd) -> None:
    """Whoever is between could have written a page without TLS."""
    async with site_for(settings_for(tmp_path, ircd.port, url="https://chat.example.org")) as site:
        browser, host = site.browser(), "chat.example.org"
        cookie = (await browser.get("/login", Host=host)).headers["set-cookie"].partition(";")[0]
        answers = {}
        for scheme in ("http", "https"):
            headers = {"Host": host, "Cookie": cookie, "Origin": f"{scheme}://{host}"}
            answers[scheme] = await browser.post("/login", headers, account="ori", password=PASSWORD)
        assert {scheme: answer.status_code for scheme, answer in answers.items()} == {"http": 403, "https": 303}


async def test_another_site_loads_no_part_of_the_page_but_may_link_to_it(site: Site) -> None:
    ori = await site.browser().come_in("ori")
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert (await ori.get("/rooms", **foreign, **{"Sec-Fetch-Mode": "no-cors"})).status_code == 403
    assert (await ori.get("/events", **foreign, **{"Sec-Fetch-Mode": "cors"})).status_code == 403
    assert (await ori.get("/rooms", **foreign, **{"Sec-Fetch-Mode": "navigate"})).status_code == 200


async def test_every_answer_forbids_foreign_scripts_frames_and_copies(site: Site) -> None:
    ori = await site.browser().come_in("ori")
    for path in ("/rooms", "/login", "/no/such/page", "/rooms/%23general"):
        headers = (await ori.get(path)).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert headers["cache-control"] == "no-store", path
        assert headers["x-content-type-options"] == "nosniff"
    page = (await ori.get("/rooms/%23general")).text
    assert re.findall(r"<script(?![^>]*src=)|\son[a-z]+=|\sstyle=|javascript:", page) == []


async def test_scripts_in_a_nick_a_topic_and_a_message_are_text(site: Site, ircd: IRCd) -> None:
    ori = await site.browser().come_in("ori")
    async with connected(ircd.port) as client:
        await authenticate(client, "PLAIN", plain("ada", PASSWORD))
        await come_in(client, "spark-ada")
        client.send(f"JOIN #xss\r\nTOPIC #xss :{SCRIPT}\r\nPRIVMSG #xss :{SCRIPT} javascript:alert(1)")
        client.send('PRIVMSG #xss :http://a.example/"onmouseover="alert(1)" \x0304red\x03 \x02bold\x02 \u202etxt.exe')
        await client.sync()
        assert (await ori.post("/join", room="#xss")).status_code == 303
        async with ori.listening() as news:
            client.send(f"PRIVMSG #xss :live {SCRIPT}")
            (live,) = await until(lambda: [each for kind, each in news if kind == "message"])
    page = (await ori.get("/rooms/%23xss")).text
    for text in (page, live["html"]):
        assert "<script>alert" not in text and "<img src=x" not in text and "&lt;script&gt;" in text
    assert 'href="javascript' not in page and '"onmouseover=' not in page
    assert 'href="http://a.example/"' in page and 'rel="noopener noreferrer nofollow"' in page
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", page) and "red bold txt.exe" in page
    for path in (f"/rooms/{SCRIPT}", f"/search?q={SCRIPT}", f"/rooms/%23xss?at={SCRIPT}", f"/login?next={SCRIPT}"):
        assert "<script>alert" not in (await ori.get(path)).text, path


async def test_a_login_link_works_once_and_says_why_it_does_not_again(site: Site) -> None:
    ori, thief = site.browser(), site.browser()
    clock = Clock()
    with open_database(site.settings.folder) as database:
        token = LoginLinks(database).make("ori", 600)
        late = LoginLinks(database, lambda: 1000.0).make("ori", 600)
        never = LoginLinks(database, clock)
        await ori.get(f"/login/{token}")
        await thief.get(f"/login/{token}")  # only a look, as programs do that show previews
        assert (await ori.post(f"/login/{token}")).status_code == 303
        again = await thief.post(f"/login/{token}")
        assert again.status_code == 410 and "already been used" in again.text
        assert (await thief.get("/rooms")).status_code == 303
        assert "already been used" in (await thief.get(f"/login/{token}")).text
        assert "has expired" in (await thief.get(f"/login/{late}")).text
        assert (await thief.post(f"/login/{late}")).status_code == 410
        assert "unknown" in (await thief.get("/login/guessed")).text
        assert token not in str(database.ask("SELECT * FROM links"))
        made = never.make("ori", 60)
        clock.now += 61
        with pytest.raises(Exception, match="has expired"):
            never.use(made)


async def test_whoever_guesses_passwords_has_to_wait(site: Site) -> None:
    browser = site.browser()
    for _ in range(5):
        answer = await browser.log_in("ori", "wrong")
        assert answer.status_code == 403 and "wrong" in answer.text and 'value="wrong"' not in answer.text
    assert (await browser.log_in("ori", PASSWORD)).status_code == 429
    now = [0.0]
    guesses = LoginThrottle(clock=lambda: now[0])
    for _ in range(20):
        guesses.failed("address 192.0.2.1")
        assert bool(guesses.wait("account ori", "address 192.0.2.1")) == (_ == 19)
    now[0] += 301
    assert guesses.wait("address 192.0.2.1") == 0


async def test_an_agent_does_not_log_in_to_the_page(site: Site) -> None:
    answer = await site.browser().log_in("claude")
    assert answer.status_code == 403 and "for people" in answer.text


async def test_behind_the_login_one_stays_on_the_page(site: Site) -> None:
    for path in ("https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/login", "x"):
        assert local_path(path) == "/", path
    browser = site.browser()
    await browser.get("/login?next=//evil.example")
    answer = await browser.post("/login", account="ori", password=PASSWORD, next="//evil.example")
    assert answer.headers["location"] == "/"
    assert local_path("/rooms/%23general?at=x") == "/rooms/%23general?at=x"


async def test_what_is_too_long_is_not_read(site: Site) -> None:
    ori = await site.browser().come_in("ori")
    assert (await ori.post("/say", room="#general", text="x" * 70_000)).status_code == 413
    own = {"Origin": site.url, "X-CSRF-Token": ori.csrf}
    assert (await ori.client.request("DELETE", "/rooms", headers=own)).status_code == 405

    async def endless():  # type: ignore[no-untyped-def]
        for _ in range(100):
            yield b"a=" + b"b" * 4096 + b"&"

    headers = {**own, "Content-Type": "application/x-www-form-urlencoded"}
    assert (await ori.client.post("/say", content=endless(), headers=headers)).status_code == 413


async def test_a_revoked_account_is_logged_out(tmp_path: Path, site: Site, ircd: IRCd) -> None:
    ori, ada = await site.browser().come_in("ori"), await site.browser().come_in("ada")
    async with ori.listening():
        AccountStore(tmp_path / "accounts.json", "spark").revoke("ori")
        with open_database(site.settings.folder) as database:
            await until(lambda: not BrowserSessions(database).all("ori"))
    assert (await ori.get("/rooms")).status_code == 303
    assert (await ada.get("/rooms")).status_code == 200


async def test_the_page_acts_for_people_alone(site: Site, tmp_path: Path) -> None:
    AccountStore(tmp_path / "accounts.json", "spark").add(new_account("robot", UserClass.BOT, always_on=False))
    for account in ("claude", "robot", "nobody"):
        with open_database(site.settings.folder) as database:
            token = LoginLinks(database).make(account, 60)
        browser = site.browser()
        await browser.get(f"/login/{token}")
        await browser.post(f"/login/{token}")
        assert (await browser.get("/rooms")).status_code != 200, account


async def test_sessions_are_ended_by_whose_they_are(site: Site) -> None:
    phone, desk = await site.browser().come_in("ori"), await site.browser().come_in("ori")
    ada = await site.browser().come_in("ada")
    with open_database(site.settings.folder) as database:
        (hers,) = BrowserSessions(database).all("ada")
        assert len(BrowserSessions(database).all("ori")) == 2
    assert (await desk.post("/account/end", id=hers.id)).status_code == 409
    assert (await ada.get("/account")).status_code == 200
    assert hers.id not in (await desk.get("/account")).text
    assert (await desk.post("/account/end-others")).status_code == 303
    assert (await phone.get("/account")).status_code == 303
    assert "This browser" in (await desk.get("/account")).text
