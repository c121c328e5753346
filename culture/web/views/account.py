"""The page *You*: browser sessions of the account, with log-out, and push status."""

from datetime import UTC, datetime

from starlette.responses import Response

from culture.protocol.names import fold
from culture.protocol.text import Profile, clean
from culture.web.page import PageRequest
from culture.web.view import WebView, get, post

_BROWSERS = {"Firefox/": "Firefox", "Edg/": "Edge", "Chrome/": "Chrome", "Safari/": "Safari"}
_SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "Windows": "Windows",
    "Mac OS": "Mac",
    "Linux": "Linux",
}


def _browser_name(text: str) -> str:
    """Return the browser and system in a User-Agent header, such as ``Firefox on Linux``."""
    browser = next((name for mark, name in _BROWSERS.items() if mark in text), "")
    system = next((name for mark, name in _SYSTEMS.items() if mark in text), "")
    return f"{browser} on {system}" if browser and system else clean(text, Profile.WEB)[:60] or "unknown browser"


async def _account(page: PageRequest) -> Response:
    account = page.person.account
    rows = [
        {
            "id": each.id,
            "browser": _browser_name(each.browser),
            "made": datetime.fromtimestamp(each.made, UTC),
            "seen": datetime.fromtimestamp(each.seen, UTC),
            "is_this": each.id == page.person.session,
        }
        for each in page.web.sessions.all(account)
    ]
    is_pushed = fold(account) in map(fold, page.web.settings.web.push)
    return page.show("account.html", sessions=rows, is_pushed=is_pushed)


async def _end(page: PageRequest) -> Response:
    """End the browser session whose id is in the form; refuse if it is another person's."""
    id, own = page.form.get("id", ""), page.web.sessions.all(page.person.account)
    if id not in {each.id for each in own}:
        return page.refuse("You have no session with this id.")
    page.web.sessions.revoke(id)
    return page.go("/account")


async def _end_others(page: PageRequest) -> Response:
    for each in page.web.sessions.all(page.person.account):
        if each.id != page.person.session:
            page.web.sessions.revoke(each.id)
    return page.go("/account")


VIEW = WebView(
    path="/account",
    title="You",
    order=95,
    icon="settings",
    routes=[get("/account", _account), post("/account/end", _end), post("/account/end-others", _end_others)],
)
