"""``PageRequest``: what a handler gets (person, form, connection) and how it answers."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from culture.ledger_views.ledger import LedgerFact
from culture.transport import IRCTransport
from culture.web import templates

if TYPE_CHECKING:
    from culture.web.connection_pool import WebConnection
    from culture.web.site import Site


@dataclass(frozen=True, slots=True)
class WebPerson:
    """A person who is logged in to the web page: account, nick and id of the browser session."""

    account: str
    nick: str
    session: str
    """Public id of the browser session."""


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """One entry of the page's navigation; ``badge`` is the number beside its title."""

    title: str
    path: str
    icon: str
    badge: int
    current: bool


def csrf_of(cookie: str) -> str:
    """Return the CSRF token for forms: an HMAC of the session cookie ``cookie``.

    Other sites cannot read the cookie, so they cannot compute the token.
    """
    return hmac.new(cookie.encode(), b"csrf", hashlib.sha256).hexdigest()


REFUSED = "X-Refused"


class PageRequest:
    """One HTTP request to the web page: its person, form and data, and methods to answer it."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.web: Site = request.app.state.site
        self._person: WebPerson | None = request.state.person
        self.form: Mapping[str, str] = request.state.form
        """Fields of the submitted form; empty without one."""
        self.csrf: str = csrf_of(request.state.cookie)
        self._stream_position = self._position()

    @property
    def person(self) -> WebPerson:
        """The person who is logged in; LookupError is raised if nobody is."""
        if self._person is None:
            raise LookupError("nobody is logged in")
        return self._person

    @property
    def visitor(self) -> WebPerson | None:
        """The person who is logged in, or None."""
        return self._person

    @property
    def query(self) -> Mapping[str, str]:
        """The query parameters of the request's URL."""
        return self.request.query_params

    @property
    def path_params(self) -> Mapping[str, str]:
        """The parameters in the request's path, by their names in the route."""
        return self.request.path_params

    @property
    def address(self) -> str:
        """The IP address of the client; "" if unknown."""
        return self.request.client.host if self.request.client else ""

    @property
    def caller_uid(self) -> int | None:
        """The Unix user id of the client's process if it runs on this machine, else None."""
        uid: int | None = self.request.state.caller_uid
        return uid

    @property
    def is_part(self) -> bool:
        """Whether htmx requests a part of a page; False if the browser loads a whole page."""
        return "hx-request" in self.request.headers

    def is_only(self, *parts: str) -> bool:
        """Return whether htmx requests only one element of a page, whose id is one of ``parts``."""
        return self.is_part and self.request.headers.get("hx-target") in parts

    # Data

    def facts(self, kind: str = "*", nick: str = "*") -> Sequence[LedgerFact]:
        """Return the ledger's facts of a kind and nick (``*``: all) from memory, oldest first."""
        return self.web.ledger.facts(kind, nick)

    async def query_ledger(self, *query: str) -> list[LedgerFact]:
        """Send ``LEDGER GET <query>`` and return the facts in the server's answer.

        ``NotSent`` is raised if the server refuses.
        """
        return await self.web.ledger.query(*query)

    async def connection(self) -> "WebConnection":
        """Return the person's IRC connection, with its events and unread counts.

        ``NotSent`` is raised if the connection cannot be opened.
        """
        return await self.web.connections.of(self.person)

    async def irc(self) -> IRCTransport:
        """Return the person's own IRC connection; ``NotSent`` if it cannot be opened."""
        return (await self.connection()).irc

    # Answers

    def show(self, template: str, status: int = 200, **values: object) -> Response:
        """Return a response with a rendered HTML template.

        ``template``: file name of the template. ``status``: HTTP status. ``values``: the template's variables by name.
        """
        return HTMLResponse(self.rendered(template, **values), status)

    def rendered(self, template: str, **values: object) -> Markup:
        """Return a template as HTML; ``values``: its variables, besides those of all templates."""
        context = {
            "person": self._person,
            "csrf": self.csrf,
            "csrf_field": Markup('<input type="hidden" name="csrf" value="{}">').format(self.csrf),
            "stream_position": self._resume_position(),
            "nav": self._navigation() if self._person else (),
            "server": self.web.settings.server.name,
            "path": self.request.scope.get("raw_path", b"/").decode("ascii"),
        }
        return Markup(templates.environment().get_template(template).render({**context, **values}))

    def _position(self) -> str:
        """Return the id of the last event in the person's event stream at present.

        It is empty if the person has no open IRC connection.
        """
        connection = self.web.connections.get(self._person.account) if self._person is not None else None
        return connection.events.position if connection is not None else ""

    def _resume_position(self) -> str:
        """Return the id of the event after which the browser tab is to read events.

        It is the last event before this request. If this request opened the IRC connection, it is the beginning of the
        stream; without a connection it is empty.
        """
        connection = self.web.connections.get(self._person.account) if self._person is not None else None
        return self._stream_position or (connection.events.beginning if connection is not None else "")

    def _navigation(self) -> list[NavigationEntry]:
        here = self.request.url.path
        entries = []
        for view in self.request.app.state.views:
            if view.title:
                badge = view.badge(self) if view.badge is not None else 0
                current = here == view.path or here.startswith(f"{view.path.rstrip('/')}/")
                entries.append(NavigationEntry(view.title, view.path, view.icon, badge, current))
        return entries

    def go(self, path: str) -> Response:
        """Return a redirect to another page; for htmx, as the header ``HX-Redirect``."""
        if self.is_part:
            return Response(status_code=204, headers={"HX-Redirect": path})
        return RedirectResponse(path, 303)

    def refuse(self, text: str, status: int = 409) -> Response:
        """Return a response that shows why something was refused, with this HTTP status.

        For htmx the status is 200 and the response has the header ``X-Refused``.
        """
        if self.is_part:
            return HTMLResponse(self.rendered("refusal.html", text=text), headers={REFUSED: "1", "HX-Reswap": "none"})
        return self.show("error.html", status, text=text)
