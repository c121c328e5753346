"""What a handler gets: who asks, for what, and how to answer."""

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
    """Who is logged in, and in which browser."""

    account: str
    nick: str
    session: str
    """The name of the session."""


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """A line of the navigation."""

    title: str
    path: str
    icon: str
    badge: int
    current: bool


def csrf_of(cookie: str) -> str:
    """The token that forms show; it is made of the cookie, which no other site can read."""
    return hmac.new(cookie.encode(), b"csrf", hashlib.sha256).hexdigest()


REFUSED = "X-Refused"


class PageRequest:
    """One request."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.web: Site = request.app.state.site
        self._person: WebPerson | None = request.state.person
        self.form: Mapping[str, str] = request.state.form
        """What was sent by a form; empty where nothing was."""
        self.csrf: str = csrf_of(request.state.cookie)
        self._news = self._position()

    @property
    def person(self) -> WebPerson:
        """Who is logged in."""
        if self._person is None:
            raise LookupError("nobody is logged in")
        return self._person

    @property
    def visitor(self) -> WebPerson | None:
        """Who is logged in, if anybody."""
        return self._person

    @property
    def query(self) -> Mapping[str, str]:
        """What stands behind the question mark."""
        return self.request.query_params

    @property
    def words(self) -> Mapping[str, str]:
        """The parameters in the path."""
        return self.request.path_params

    @property
    def address(self) -> str:
        """Where the one who asks is; empty where it is not known."""
        return self.request.client.host if self.request.client else ""

    @property
    def caller(self) -> int | None:
        """Whose process asks, where it is one of this machine."""
        found: int | None = self.request.state.caller
        return found

    @property
    def is_part(self) -> bool:
        """Whether a part of a page asks, to be replaced, and not a browser for a whole one."""
        return "hx-request" in self.request.headers

    def is_only(self, *parts: str) -> bool:
        """Whether only one of these parts of the page, by their ids, is to be replaced."""
        return self.is_part and self.request.headers.get("hx-target") in parts

    # What there is to show

    def facts(self, kind: str = "*", nick: str = "*") -> Sequence[LedgerFact]:
        """What the ledger says, the oldest first."""
        return self.web.ledger.facts(kind, nick)

    async def ask(self, *question: str) -> list[LedgerFact]:
        """What the ledger answers to a question of one's own (``LEDGER GET …``); ``NotSent`` where it does not."""
        return await self.web.ledger.ask(*question)

    async def seat(self) -> "WebConnection":
        """Where the person sits, with what was said to them."""
        return await self.web.seats.of(self.person)

    async def irc(self) -> IRCTransport:
        """The person's own connection: what is said there, they say. ``NotSent`` while there is none."""
        return (await self.seat()).irc

    # Answering

    def show(self, template: str, status: int = 200, **values: object) -> Response:
        """A page made of a template."""
        return HTMLResponse(self.drawn(template, **values), status)

    def drawn(self, template: str, **values: object) -> Markup:
        """The text that a template makes."""
        context = {
            "person": self._person,
            "csrf": self.csrf,
            "csrf_field": Markup('<input type="hidden" name="csrf" value="{}">').format(self.csrf),
            "news": self._news_from(),
            "nav": self._navigation() if self._person else (),
            "server": self.web.settings.server.name,
            "path": self.request.scope.get("raw_path", b"/").decode("ascii"),
        }
        return Markup(templates.environment().get_template(template).render({**context, **values}))

    def _position(self) -> str:
        """Where the news begin that this page does not have yet; empty where nobody is told any."""
        seat = self.web.seats.known(self._person.account) if self._person is not None else None
        return seat.hub.position if seat is not None else ""

    def _news_from(self) -> str:
        """Of whoever had no seat when they asked, all from the beginning of it."""
        seat = self.web.seats.known(self._person.account) if self._person is not None else None
        return self._news or (seat.hub.beginning if seat is not None else "")

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
        """On to another page; a part of a page is told to have the whole one go."""
        if self.is_part:
            return Response(status_code=204, headers={"HX-Redirect": path})
        return RedirectResponse(path, 303)

    def refuse(self, text: str, status: int = 409) -> Response:
        """Say why something was not done; a part of a page is not an error to its browser, and says so in a header."""
        if self.is_part:
            return HTMLResponse(self.drawn("refusal.html", text=text), headers={REFUSED: "1", "HX-Reswap": "none"})
        return self.show("error.html", status, text=text)
