"""The web page: rooms, agents, questions, mesh and team in a browser, for people with accounts.

A request goes through ``security`` (Host, Origin, CSRF, login), then to the handler of a view. The handler gets a
``PageRequest``, reads views of the ledger from the ``MeshModel`` or uses the person's own IRC connection, and renders a
template. Open tabs listen to ``/events`` and reload the parts of the page whose data changed.

=====================  ================================================================================
app                    build the ASGI application, serve it
site                   settings, and the objects that all requests share
security               middleware: Host, Origin, CSRF token, login, security headers
sessions, login_links  browser sessions and one-time login links, stored by ``database`` (SQLite)
throttle               rate limit for passwords, which ``views/login`` checks at the IRC server
view, views/           routes and navigation; one module per page, with what only that page needs
page                   ``PageRequest``: what a handler gets and how it answers
templates, templates/  the Jinja environment and its filters; the HTML
static_files, static/  style, scripts, icons, cached by version
connection_pool        one IRC connection per person, shared by their tabs
event_stream           server-sent events for the tabs of one person, resumable
unread                 unread counts and read markers of one person
message_view           messages as HTML
slash_commands         what a person types: a message, or ``/join`` …
agent_command          send a control word or an answer to an agent, wait for its reply
search                 search the history by words or by meaning
ledger_client          a copy of the ledger in memory, refreshed every second
mesh_model             agents, questions, alerts, spend, tasks and links for all pages
spend_chart            layout of the drawing of costs
push                   push notifications for unread mentions
=====================  ================================================================================

To add a page:

- Add a module to ``culture/web/views`` with a constant ``VIEW = WebView(...)``; it is found by itself. A view has a
  ``title`` and a ``path`` for the navigation (no title: not in it), an ``order``, an ``icon`` (the name of a symbol),
  ``routes``, and a ``badge`` (a function that returns the number beside its name).
- Make ``routes`` with ``get(path, handler)`` and ``post(path, handler)``. A handler is
  ``async def handler(page: PageRequest) -> Response``. All paths need a login unless ``security.OPEN`` lists them.
- :class:`culture.web.page.PageRequest` has ``person`` (account, nick), ``form`` and ``query`` (texts by name),
  ``path_params``, ``csrf``, ``facts(kind, nick)`` (the ledger in memory), ``query_ledger(*query)`` (the server's
  ledger), ``await irc()`` (the person's own connection; ``NotSent`` has the server's reason),
  ``show(template, **values)``, ``go(path)``, ``refuse(text)`` and ``web`` (settings, shared objects).
- Templates extend ``base.html`` and fill ``title`` and ``main``. They are escaped, and an unknown name is an error.
  Filters: ``at`` (a time), ``ago``, ``linked`` (a foreign text with safe links). A form is
  ``<form method="post" action="…">{{ csrf_field }} …``; htmx sends the token by itself.
- No inline script, no inline style, no ``style=`` attribute: the Content-Security-Policy forbids them. Drawings are SVG
  with classes.
- For live updates, name the event in the template: ``<section id="list" hx-get="/agents" hx-select="#list"
  hx-swap="outerHTML" hx-trigger="facts:state from:body">``. Events are ``facts``, ``facts:<kind>``, ``rooms``,
  ``members`` and ``topic``.
"""
