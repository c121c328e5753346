"""The login pages: log in with a password, a login link or an invitation link, and log out."""

import asyncio
import math

from starlette.responses import RedirectResponse, Response

from culture.lib.secret_compare import same_secret
from culture.protocol.names import fold
from culture.protocol.vocabulary import UserClass
from culture.transport import ClientIdentity, Hopeless, IRCTransport, NotSent
from culture.transport.one_shot import RequestDeclined, ask_once
from culture.web.login_links import LinkRefused
from culture.web.page import PageRequest
from culture.web.security import cookie_name, set_cookie
from culture.web.site import Site
from culture.web.throttle import ADDRESS
from culture.web.view import WebView, get, post

_TIMEOUT = 15.0
_TOO_MANY = "too many"
_DAY = 86400
_LONGEST = 500


class WrongPassword(Exception):
    """A login with a password is refused; the text says why.

    ``status``: the status for the HTTP response.
    """

    def __init__(self, text: str, status: int = 403) -> None:
        super().__init__(text)
        self.status = status


async def check_password(site: Site, address: str, account: str, password: str) -> str:
    """Check a person's password, and return the account's name as the server spells it.

    ``address``: IP address of the client, for the rate limit. ``WrongPassword`` is raised if the password is wrong, the
    account is not a person's, or there were too many tries.
    """
    keys = (f"{ADDRESS}{address}", f"account {fold(account)}")
    wait = site.throttle.wait(*keys)
    if wait > 0:
        raise WrongPassword(f"Too many wrong passwords. Try again in {math.ceil(wait / 60)} minutes.", 429)
    if not account or not password:
        raise WrongPassword("Enter account and password.")
    if not account.isprintable() or " " in account:
        raise WrongPassword("Account or password are wrong.")
    site.throttle.failed(*keys)  # counted in advance: parallel requests must not have a guess each
    try:
        name = await _server_login(site, account, password)
    except Hopeless as refused:
        if _TOO_MANY not in str(refused).lower():
            raise WrongPassword("Account or password are wrong.") from None
        site.throttle.forgive(*keys)
        raise WrongPassword(
            "The server checks no passwords at the moment: too many were wrong. Try again later.", 429
        ) from None
    except BaseException:
        site.throttle.forgive(*keys)
        raise
    site.throttle.forgive(keys[0])  # only this failure, or one right password would allow more guesses of others
    site.throttle.succeeded(keys[1])
    return name


async def _server_login(site: Site, account: str, password: str) -> str:
    settings = site.settings
    irc = IRCTransport(settings.address, ClientIdentity(settings.nick_of(account), account, password, bot=False))
    try:
        async with asyncio.timeout(_TIMEOUT):
            await irc.start()
        members = await irc.send_who(irc.nick)
        if {member.kind for member in members} & {UserClass.AGENT, UserClass.BOT}:
            raise WrongPassword("This page is for people; this account belongs to an agent or bot.")
        return irc.view.account or account
    except TimeoutError:
        raise WrongPassword("The server does not respond. Try again.", 503) from None
    except NotSent as refused:
        raise WrongPassword(f"Unexpected answer of the server: {refused.reason}", 503) from None
    finally:
        await irc.stop("checked")


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


async def _invitation_form(page: PageRequest) -> Response:
    return _show_invitation(page)


def _show_invitation(page: PageRequest, status: int = 200, text: str = "") -> Response:
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
        return _show_invitation(page, 429, f"Too many attempts. Try again in {math.ceil(wait / 60)} minutes.")
    if not same_secret(password, again):
        return _show_invitation(page, 400, "The two passwords differ.")
    try:
        await ask_once(page.web.settings.address, ClientIdentity(account), "REDEEM", account, key, password)
    except RequestDeclined as declined:
        page.web.throttle.failed(*keys)
        return _show_invitation(page, 403, str(declined))
    except (Hopeless, OSError, TimeoutError):
        return _show_invitation(page, 503, "The server does not respond. Try again.")
    return start_session(page, account, "/")


VIEW = WebView(
    path="/login",
    routes=[
        get("/login", _form),
        post("/login", _log_in),
        get("/login/{token}", _link),
        post("/login/{token}", _use_link),
        post("/logout", _log_out),
        get("/login/invited/{account}/{key}", _invitation_form),
        post("/login/invited/{account}/{key}", _redeem),
    ],
)
