"""The page of an invitation link: choose a password, which creates the account, and log in."""

import math

from starlette.responses import Response

from culture.lib.secret_compare import same_secret
from culture.protocol.names import fold
from culture.transport import ClientIdentity, Hopeless
from culture.transport.one_shot import RequestDeclined, ask_once
from culture.web.page import PageRequest
from culture.web.security import set_cookie
from culture.web.view import WebView, get, post
from culture.web.views.login import start_session

_LONGEST = 500


async def _form(page: PageRequest) -> Response:
    return _show_form(page)


def _show_form(page: PageRequest, status: int = 200, text: str = "") -> Response:
    """Return the page with the form in which an invited person chooses a password.

    ``status``: HTTP status. ``text``: an error message. The invitation's key is only checked when the form is
    submitted.
    """
    account, key = page.path_params["account"], page.path_params["key"]
    response = page.show("invited.html", status, account=account, key=key, text=text)
    set_cookie(response, page.web.settings, page.request.state.cookie, None)
    return response


async def _redeem(page: PageRequest) -> Response:
    account, key = page.path_params["account"], page.path_params["key"]
    password, again = (page.form.get(field, "")[:_LONGEST] for field in ("password", "again"))
    keys = (f"address {page.address}", f"invitation {fold(account)}")
    wait = page.web.throttle.wait(*keys)
    if wait > 0:
        return _show_form(page, 429, f"Too many attempts. Try again in {math.ceil(wait / 60)} minutes.")
    if not same_secret(password, again):
        return _show_form(page, 400, "The two passwords differ.")
    try:
        await ask_once(page.web.settings.address, ClientIdentity(account), "REDEEM", account, key, password)
    except RequestDeclined as declined:
        page.web.throttle.failed(*keys)
        return _show_form(page, 403, str(declined))
    except (Hopeless, OSError, TimeoutError):
        return _show_form(page, 503, "The server does not respond. Try again.")
    return start_session(page, account, "/")


VIEW = WebView(
    path="/login/invited",
    routes=[
        get("/login/invited/{account}/{key}", _form),
        post("/login/invited/{account}/{key}", _redeem),
    ],
)
