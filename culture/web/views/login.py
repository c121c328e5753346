"""The login page: log in with a password or a login link, and log out."""

from starlette.responses import RedirectResponse, Response

from culture.web.login_links import LinkRefused
from culture.web.page import PageRequest
from culture.web.password_check import WrongPassword, check_password
from culture.web.security import cookie_name, set_cookie
from culture.web.view import WebView, get, post

_LONGEST = 500
_DAY = 86400


async def _form(page: PageRequest) -> Response:
    if page.visitor is not None:
        return page.go("/")
    return _login_page(page, next=page.query.get("next", ""))


def _login_page(page: PageRequest, status: int = 200, **values: object) -> Response:
    blank: dict[str, object] = {"text": "", "token": "", "account": "", "next": ""}
    response = page.show("login.html", status, **{**blank, **values})
    set_cookie(response, page.web.settings, page.request.state.cookie, None)
    return response


async def _log_in(page: PageRequest) -> Response:
    account, password = page.form.get("account", "").strip()[:_LONGEST], page.form.get("password", "")[:_LONGEST]
    next_path = page.form.get("next", "")
    try:
        name = await check_password(page.web, page.address, account, password)
    except WrongPassword as wrong:
        return _login_page(page, wrong.status, text=str(wrong), account=account, next=next_path)
    return start_session(page, name, next_path)


async def _link(page: PageRequest) -> Response:
    token = page.path_params["token"]
    try:
        return _login_page(page, token=token, account=page.web.links.account_of(token))
    except LinkRefused as refused:
        return _login_page(page, 410, text=str(refused))


async def _use_link(page: PageRequest) -> Response:
    try:
        return start_session(page, page.web.links.use(page.path_params["token"]), "/")
    except LinkRefused as refused:
        return _login_page(page, 410, text=str(refused))


def start_session(page: PageRequest, account: str, next_path: str) -> Response:
    """Start a browser session of an account and redirect to ``next_path``.

    The session has a new cookie, against session fixation.
    """
    if page.visitor is not None:
        page.web.sessions.revoke(page.visitor.session)
    secret = page.web.sessions.start(account, page.request.headers.get("user-agent", ""), page.caller_uid)
    response = RedirectResponse(local_path(next_path), 303)
    set_cookie(response, page.web.settings, secret, page.web.settings.web.session_days * _DAY)
    return response


def local_path(path: str) -> str:
    """Return ``path`` if it is a path of this web page, else ``/``; never an address elsewhere."""
    is_path = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() and "\\" not in path
    return path if is_path and not path.startswith(("/login", "/logout")) else "/"


async def _log_out(page: PageRequest) -> Response:
    page.web.sessions.revoke(page.person.session)
    response = page.go("/login")
    response.delete_cookie(cookie_name(page.web.settings), path="/", secure=page.web.settings.is_secure, httponly=True)
    return response


VIEW = WebView(
    path="/login",
    routes=[
        get("/login", _form),
        post("/login", _log_in),
        get("/login/{token}", _link),
        post("/login/{token}", _use_link),
        post("/logout", _log_out),
    ],
)
