"""Somebody who was invited makes their account on the page."""

import time

import pytest

from culture.server.auth.invitations import Invitation, Invitations, digest_of, new_key, path_of
from culture.server.ircd import IRCd
from tests.support.web import Site

GOOD = {"password": "correct horse", "again": "correct horse"}


def invited(ircd: IRCd, name: str = "eve", left: float = 60.0) -> str:
    key, now = new_key(), time.time()
    Invitations(path_of(ircd.parts.config)).add(Invitation("person", digest_of(key), now + left, name), now)
    return f"/login/invited/{name}/{key}"


async def test_who_was_invited_chooses_a_password_and_is_in(site: Site, ircd: IRCd) -> None:
    place, browser = invited(ircd), site.browser()
    assert "invited as <b>eve</b>" in (await browser.get(place)).text
    assert (await browser.post(place, **GOOD)).headers["location"] == "/"
    assert "spark-eve" in (await browser.get("/rooms")).text
    assert (await site.browser().log_in("eve", "correct horse")).status_code == 303
    thief = site.browser()
    await thief.get(place)
    assert "used already" in (await thief.post(place, **GOOD)).text
    assert (await thief.get("/rooms")).status_code == 303


@pytest.mark.parametrize(
    ("left", "changed", "why"),
    [
        (60.0, {"again": "another horse"}, "The two passwords differ"),
        (60.0, {"password": "short", "again": "short"}, "at least 8"),
        (-1.0, {}, "has expired"),
    ],
    ids=["two", "short", "late"],
)
async def test_an_attempt_is_refused_and_told_why(
    site: Site, ircd: IRCd, left: float, changed: dict[str, str], why: str
) -> None:
    place, browser = invited(ircd, left=left), site.browser()
    await browser.get(place)
    tried = await browser.post(place, **{**GOOD, **changed})
    assert tried.status_code in (400, 403) and why in tried.text
    assert (await browser.get("/rooms")).status_code == 303


async def test_whoever_guesses_has_to_wait(site: Site, ircd: IRCd) -> None:
    right, browser = invited(ircd), site.browser()
    await browser.get(right)
    for _ in range(5):
        assert (await browser.post(f"/login/invited/eve/{new_key()}", **GOOD)).status_code == 403
    assert (await browser.post(right, **GOOD)).status_code == 429
    assert ircd.parts.accounts.get("eve") is None


async def test_a_form_from_elsewhere_makes_no_account(site: Site, ircd: IRCd) -> None:
    place, browser = invited(ircd), site.browser()
    await browser.get(place)
    assert (await browser.post(place, {"Origin": "https://evil.example"}, **GOOD)).status_code == 403
    browser.csrf = "0" * 64
    assert (await browser.post(place, **GOOD)).status_code == 403
    assert ircd.parts.accounts.get("eve") is None
