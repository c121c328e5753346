"""The page on which an owner lets a program speak."""

from collections.abc import Awaitable, Callable
from html import escape
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from culture.bridge.oauth import Asked, Consents
from culture.protocol.text import Profile, one_line

PATH = "/consent"
REGISTRATION = "/register"
_NO_CONSENT = "this bridge wants a token in the header Authorization: `culture bridge token add NICK` makes one"
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>culture bridge</title>
<style>
body{{font:1rem/1.5 sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem}}
input,button{{font:inherit;padding:.4rem}}
</style>
<h1>Let a program speak on IRC?</h1>
{body}
</html>"""
_FORM = """<p>A program that calls itself <b>{name}</b> asks to read and write here. When you agree, it is sent to
<b>{place}</b>. Agree only if you have just asked for this yourself.</p>
<p>On the machine of the bridge, type <code>culture bridge token code NICK</code>. The program will speak as that
nick, and you can take it back with <code>culture bridge token revoke NICK</code>.</p>
<p role="alert">{problem}</p>
<form method="post"><input type="hidden" name="request" value="{request}">
<label>Code <input name="code" autocomplete="off" autofocus placeholder="XXXX-XXXX-XXXX"></label>
<button name="answer" value="yes">Agree</button> <button name="answer" value="no">Refuse</button></form>"""

Endpoint = Callable[[Request], Awaitable[Response]]


def consent_page(consents: Consents) -> Endpoint:
    """The page over what waits for consent."""

    async def page(request: Request) -> Response:
        said = request.query_params if request.method == "GET" else await request.form()
        id = str(said.get("request", ""))
        asked = consents.asked(id)
        if asked is None:
            return _page("<p>Nothing waits for consent here. Begin anew in the program.</p>", 400)
        if request.method == "GET":
            return _form(id, asked)
        return _answered(consents, id, asked, str(said.get("answer", "")), str(said.get("code", "")))

    return page


async def no_consent(request: Request) -> Response:
    """For programs that had no token, and now look for a way to get one by themselves: they show this to their user."""
    return PlainTextResponse(_NO_CONSENT, 404)


def _answered(consents: Consents, id: str, asked: Asked, answer: str, code: str) -> Response:
    if answer == "no":
        return _redirect(consents.deny(id))
    target = consents.consent(id, code)
    if target is None:
        return _form(id, asked, "That is not a code, or it was used, or it is too old.", 403)
    return _redirect(target)


def _redirect(target: str | None) -> Response:
    return RedirectResponse(target or "/", 303, headers=_HEADERS)


def _form(id: str, asked: Asked, problem: str = "", status: int = 200) -> Response:
    parts = urlsplit(str(asked.params.redirect_uri))
    name = one_line(asked.client.client_name or "nameless", Profile.WEB)[:80]
    place = f"{parts.scheme}://{parts.netloc}"
    form = _FORM.format(name=escape(name), place=escape(place), problem=escape(problem), request=escape(id))
    return _page(form, status)


def _page(body: str, status: int) -> Response:
    return HTMLResponse(_PAGE.format(body=body), status, headers=_HEADERS)
