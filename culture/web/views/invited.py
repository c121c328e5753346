"""The way in for somebody who was invited: they choose a password, and the account is theirs."""

import math

from starlette.responses import Response

from culture.config.secret_compare import same_secret
from culture.transport import ClientIdentity, Hopeless
from culture.transport.one_shot import RequestDeclined, ask_once
from culture.web.page import PageRequest
from culture.web.security import set_cookie
from culture.web.view import WebView, done, shown
from culture.web.views.login import let_in

_LONGEST = 500


async def _form(page: PageRequest) -> Response:
    return _shown(page)


def _shown(page: PageRequest, status: int = 200, text: str = "") -> Response:
    """Whether the key is any good is not told before somebody sends the form."""
    account, key = page.words["account"], page.words["key"]
    response = page.show("invited.html", status, account=account, key=key, text=text)
    set_cookie(response, page.web.settings, page.request.state.cookie, None)
    return response


async def _redeem(page: PageRequest) -> Response:
    account, key = page.words["account"], page.words["key"]
    password, again = (page.form.get(field, "")[:_LONGEST] for field in ("password", "again"))
    keys = (f"address {page.address}", f"invitation {account.lower()}")
    wait = page.web.throttle.wait(*keys)
    if wait > 0:
        return _shown(page, 429, f"Too many attempts. Try again in {math.ceil(wait / 60)} minutes.")
    if not same_secret(password, again):
        return _shown(page, 400, "These were two different passwords.")
    try:
        await ask_once(page.web.settings.address, ClientIdentity(account), "REDEEM", account, key, password)
    except RequestDeclined as no:
        page.web.throttle.failed(*keys)
        return _shown(page, 403, str(no))
    except (Hopeless, OSError, TimeoutError):
        return _shown(page, 503, "The server does not answer at the moment; try again.")
    return let_in(page, account, "/")


VIEW = WebView(
    path="/login/invited",
    routes=[
        shown("/login/invited/{account}/{key}", _form),
        done("/login/invited/{account}/{key}", _redeem),
    ],
)
