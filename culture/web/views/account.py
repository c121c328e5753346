"""One's own account: in which browsers one is logged in, and how to log out of them."""

from datetime import UTC, datetime

from starlette.responses import Response

from culture.protocol.names import fold
from culture.protocol.text import Profile, clean
from culture.web.page import PageRequest
from culture.web.view import WebView, done, shown

_BROWSERS = {"Firefox/": "Firefox", "Edg/": "Edge", "Chrome/": "Chrome", "Safari/": "Safari"}
_SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "Windows": "Windows",
    "Mac OS": "Mac",
    "Linux": "Linux",
}


def _named(text: str) -> str:
    """A browser as people call it, from what it says of itself."""
    browser = next((name for mark, name in _BROWSERS.items() if mark in text), "")
    system = next((name for mark, name in _SYSTEMS.items() if mark in text), "")
    return (
        f"{browser} on {system}" if browser and system else clean(text, Profile.WEB)[:60] or "a browser without a name"
    )


async def _account(page: PageRequest) -> Response:
    account = page.person.account
    rows = [
        {
            "id": each.id,
            "browser": _named(each.browser),
            "made": datetime.fromtimestamp(each.made, UTC),
            "seen": datetime.fromtimestamp(each.seen, UTC),
            "is_this": each.id == page.person.session,
        }
        for each in page.web.sessions.all(account)
    ]
    is_pushed = fold(account) in map(fold, page.web.settings.web.push)
    return page.show("account.html", sessions=rows, is_pushed=is_pushed)


async def _end(page: PageRequest) -> Response:
    """A session of one's own; those of others are none of theirs."""
    wanted, own = page.form.get("id", ""), page.web.sessions.all(page.person.account)
    if wanted not in {each.id for each in own}:
        return page.refuse("There is no such session of yours.")
    page.web.sessions.revoke(wanted)
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
    routes=[shown("/account", _account), done("/account/end", _end), done("/account/end-others", _end_others)],
)
