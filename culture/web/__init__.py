"""The web page: rooms, agents, questions, mesh and team in a browser, for people with accounts.

How it is put together, for whoever adds a page:

- A page is a module in ``culture/web/views`` with a constant ``VIEW = View(...)``: found there, nothing else
  to edit. A view has a ``title`` and a ``path`` for the navigation (no title: not in it), an ``order``, an
  ``icon`` (the name of a symbol), ``routes``, and a ``badge`` (a function of the page that gives the number
  beside its name).
- ``routes`` are made by ``shown(path, handler)`` for GET and ``done(path, handler)`` for POST. A handler is
  ``async def handler(page: Page) -> Response``. Login, CSRF, Host and Origin were checked before it is called
  (:mod:`culture.web.security`); whatever is not in ``OPEN`` there needs a login.
- :class:`culture.web.page.Page` is all a handler gets: ``person`` (account, nick), ``form`` and ``query``
  (texts by name), ``words`` (the path's parameters), ``csrf``, ``facts(kind, nick)`` (what the ledger says,
  kept up to date), ``ask(*question)`` (any other question to the ledger), ``await irc()`` (the person's own
  connection; ``NotSent`` with the server's words), ``show(template, **values)``, ``go(path)``,
  ``refuse(text)``, ``web`` (settings, folders).
- Templates are in ``culture/web/templates``, extend ``base.html`` and fill ``title`` and ``main``. They are
  escaped, and an unknown name is an error. Filters: ``at`` (a time), ``ago``, ``said`` (what somebody wrote:
  safe links), ``plain`` (without formatting). A form is ``<form method="post" action="…">{{ csrf_field }}
  …``; htmx sends the token by itself.
- No inline script, no inline style, no ``style=`` attribute: the Content-Security-Policy forbids them.
  Drawings are SVG with classes.
- Live: ``/events`` tells the page what has changed, and ``app.js`` makes it an event of ``body``: ``facts``,
  ``facts:state``, ``facts:question`` … So ``<section id="list" hx-get="/agents" hx-select="#list"
  hx-swap="outerHTML" hx-trigger="facts:state from:body">`` is always up to date.
"""
