"""The pages of rooms and private conversations: history, members, and the form to write."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from starlette.responses import Response

from culture.protocol.names import fold, is_channel
from culture.protocol.vocabulary import UserClass
from culture.transport import ChannelMember, Message, NotSent
from culture.web.connection_pool import WebConnection
from culture.web.message_view import render_messages
from culture.web.page import PageRequest
from culture.web.search import recent
from culture.web.slash_commands import send_input
from culture.web.templates import room_path
from culture.web.unread import Conversation, mark_read
from culture.web.view import WebView, get, post

_PAGE_SIZE = 50
_CONVERSATIONS = 30
_PROGRAMS = (UserClass.AGENT, UserClass.BOT)
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Sidebar:
    """The list beside a page: rooms and private conversations, with the current one."""

    rooms: Sequence[Conversation]
    conversations: Sequence[Conversation]
    current: str
    """Folded name of the one that is open."""
    path: str


async def _start(page: PageRequest) -> Response:
    connection = await page.connection()
    rooms = connection.conversations.rooms(connection.irc.channels)
    room = next((each for each in rooms if each.mentions), rooms[0] if rooms else None)
    return page.go(room_path(room.name) if room else "/rooms")


async def _list(page: PageRequest) -> Response:
    """Return the page with the person's rooms, other rooms, and people and agents to talk to."""
    connection = await page.connection()
    irc = connection.irc
    if page.is_only("sidebar"):
        return page.show("rooms.html", others=(), people=(), sidebar=_sidebar(connection))
    joined = set(map(fold, irc.channels))
    rows = [line.params for line in await irc.request("LIST") if line.verb == "322" and len(line.params) > 3]
    others = sorted(
        ((name, int(count), topic) for _, name, count, topic, *_ in rows if fold(name) not in joined),
        key=lambda row: (-row[1], row[0]),
    )
    people = sorted({user.nick for user in irc.view.users.values() if not irc.view.is_self(user.nick)}, key=fold)
    return page.show("rooms.html", others=others, people=people, sidebar=_sidebar(connection))


async def _room(page: PageRequest) -> Response:
    name = page.path_params["name"][:_LONGEST_NAME]
    connection = await page.connection()
    if "before" in page.query:
        return await _part_of(page, connection, name, before=page.query["before"])
    if "after" in page.query:
        return await _part_of(page, connection, name, after=page.query["after"])
    around = page.query.get("at", "")
    channel = connection.irc.view.channel(name)
    messages: list[Message] = []
    if page.is_only("sidebar", "members", "topic"):
        pass
    elif channel is None and is_channel(name):
        messages = await recent(connection.irc, name, _PAGE_SIZE - 1)
    else:
        messages = await _history(connection, name, around=around or None)
    return page.show(
        "room.html",
        name=channel.name if channel else name,
        private=not is_channel(name),
        joined=channel is not None or not is_channel(name),
        topic=channel.topic if channel else "",
        messages=render_messages(messages, connection.irc.nick),
        earlier=messages[0].msgid if len(messages) >= _PAGE_SIZE or (around and messages) else "",
        at=around,
        members=_members(connection, name),
        sidebar=_sidebar(connection, name),
    )


async def _history(
    connection: WebConnection, name: str, before: str | None = None, after: str | None = None, around: str | None = None
) -> list[Message]:
    try:
        return await connection.irc.history(name, after=after, before=before, around=around, limit=_PAGE_SIZE)
    except NotSent:
        if not connection.irc.connected and not (before or after or around):
            return await connection.irc.read(name)  # from memory, until the server is back
        raise


async def _part_of(
    page: PageRequest, connection: WebConnection, name: str, before: str | None = None, after: str | None = None
) -> Response:
    messages = await _history(connection, name, before, after)
    earlier = messages[0].msgid if before and len(messages) >= _PAGE_SIZE else ""
    return page.show(
        "earlier.html", messages=render_messages(messages, connection.irc.nick), earlier=earlier, name=name
    )


def _members(connection: WebConnection, name: str) -> list[ChannelMember]:
    members = connection.irc.members(name)
    return sorted(members, key=lambda member: (member.kind in _PROGRAMS, not member.is_operator, fold(member.nick)))


def _sidebar(connection: WebConnection, current: str = "") -> Sidebar:
    conversations = connection.conversations.private()[:_CONVERSATIONS]
    if current and not is_channel(current) and connection.conversations.get(current) is None:
        conversations = [Conversation(current, private=True), *conversations]
    return Sidebar(
        connection.conversations.rooms(connection.irc.channels), conversations, fold(current), room_path(current)
    )


async def _say(page: PageRequest) -> Response:
    room = page.form.get("room", "")[:_LONGEST_NAME]
    irc = await page.irc()
    try:
        next_path = await send_input(irc, room, page.form.get("text", ""))
    except NotSent as refused:
        note = " It may have been sent: check before you send it again." if refused.uncertain else ""
        return page.refuse(f"{refused.reason}{note}")
    if next_path is not None:
        return page.go(next_path)
    return Response(status_code=204) if page.is_part else page.go(room_path(room))


async def _join(page: PageRequest) -> Response:
    name = page.form.get("room", "").strip()[:_LONGEST_NAME]
    name = name if is_channel(name) else f"#{name}"
    await (await page.irc()).join_channel(name, page.form.get("key", ""))
    return page.go(room_path(name))


async def _leave(page: PageRequest) -> Response:
    await (await page.irc()).part_channel(page.form.get("room", "")[:_LONGEST_NAME])
    return page.go("/rooms")


async def _read(page: PageRequest) -> Response:
    connection = await page.connection()
    conversation = connection.conversations.get(page.form.get("room", ""))
    if conversation is not None and conversation.last_message_at is not None and conversation.unread:
        with suppress(NotSent):
            await mark_read(connection.irc, conversation, conversation.last_message_at)
        connection.events.publish("rooms", {})
    return Response(status_code=204)


def _badge(page: PageRequest) -> int:
    connection = page.web.connections.get(page.person.account)
    return connection.conversations.mentions if connection is not None else 0


VIEW = WebView(
    path="/rooms",
    title="Rooms",
    order=10,
    icon="rooms",
    badge=_badge,
    routes=[
        get("/", _start),
        get("/rooms", _list),
        post("/say", _say),
        post("/join", _join),
        post("/leave", _leave),
        post("/read", _read),
        get("/rooms/{name:path}", _room),
    ],
)
