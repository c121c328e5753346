"""Rooms and conversations: what was said, who is there, and saying something."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from starlette.responses import Response

from culture.protocol.names import fold, is_channel
from culture.protocol.vocabulary import UserClass
from culture.transport import ChannelMember, Message, NotSent
from culture.web.connection_pool import WebConnection
from culture.web.message_view import drawn
from culture.web.page import PageRequest
from culture.web.search import recent
from culture.web.slash_commands import speak
from culture.web.templates import room_path
from culture.web.unread import Conversation, mark_read
from culture.web.view import WebView, done, shown

_PAGE = 50
_CONVERSATIONS = 30
_PROGRAMS = (UserClass.AGENT, UserClass.BOT)
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Sidebar:
    """The rooms and conversations beside a page."""

    rooms: Sequence[Conversation]
    conversations: Sequence[Conversation]
    current: str
    """The folded name of the one that is open."""
    path: str


async def _start(page: PageRequest) -> Response:
    seat = await page.seat()
    rooms = seat.talks.rooms(seat.irc.channels)
    called = next((talk for talk in rooms if talk.calls), rooms[0] if rooms else None)
    return page.go(room_path(called.name) if called else "/rooms")


async def _list(page: PageRequest) -> Response:
    """One's own rooms; those that one is not in, and people and agents to talk with."""
    seat = await page.seat()
    irc = seat.irc
    if page.is_only("sidebar"):
        return page.show("rooms.html", others=(), people=(), sidebar=_sidebar(seat))
    joined = set(map(fold, irc.channels))
    rows = [line.params for line in await irc.request("LIST") if line.verb == "322" and len(line.params) > 3]
    found = sorted(
        ((name, int(count), topic) for _, name, count, topic, *_ in rows if fold(name) not in joined),
        key=lambda row: (-row[1], row[0]),
    )
    people = sorted({user.nick for user in irc.view.users.values() if not irc.view.is_self(user.nick)}, key=fold)
    return page.show("rooms.html", others=found, people=people, sidebar=_sidebar(seat))


async def _room(page: PageRequest) -> Response:
    name = page.words["name"][:_LONGEST_NAME]
    seat = await page.seat()
    if "before" in page.query:
        return await _part_of(page, seat, name, before=page.query["before"])
    if "after" in page.query:
        return await _part_of(page, seat, name, after=page.query["after"])
    around = page.query.get("at", "")
    channel = seat.irc.view.channel(name)
    messages: list[Message] = []
    if page.is_only("sidebar", "members", "topic"):
        pass
    elif channel is None and is_channel(name):
        messages = await recent(seat.irc, name, _PAGE - 1)
    else:
        messages = await _history(seat, name, around=around or None)
    return page.show(
        "room.html",
        name=channel.name if channel else name,
        private=not is_channel(name),
        joined=channel is not None or not is_channel(name),
        topic=channel.topic if channel else "",
        messages=drawn(messages, seat.irc.nick),
        earlier=messages[0].msgid if len(messages) >= _PAGE or (around and messages) else "",
        at=around,
        members=_members(seat, name),
        sidebar=_sidebar(seat, name),
    )


async def _history(
    seat: WebConnection, name: str, before: str | None = None, after: str | None = None, around: str | None = None
) -> list[Message]:
    try:
        return await seat.irc.history(name, after=after, before=before, around=around, limit=_PAGE)
    except NotSent:
        if not seat.irc.connected and not (before or after or around):
            return await seat.irc.read(name)  # what was heard here, until the server is back
        raise


async def _part_of(
    page: PageRequest, seat: WebConnection, name: str, before: str | None = None, after: str | None = None
) -> Response:
    messages = await _history(seat, name, before, after)
    earlier = messages[0].msgid if before and len(messages) >= _PAGE else ""
    return page.show("earlier.html", messages=drawn(messages, seat.irc.nick), earlier=earlier, name=name)


def _members(seat: WebConnection, name: str) -> list[ChannelMember]:
    found = seat.irc.members(name)
    return sorted(found, key=lambda member: (member.kind in _PROGRAMS, not member.is_operator, fold(member.nick)))


def _sidebar(seat: WebConnection, current: str = "") -> Sidebar:
    conversations = seat.talks.conversations()[:_CONVERSATIONS]
    if current and not is_channel(current) and seat.talks.known(current) is None:
        conversations = [Conversation(current, private=True), *conversations]
    return Sidebar(seat.talks.rooms(seat.irc.channels), conversations, fold(current), room_path(current))


async def _say(page: PageRequest) -> Response:
    room = page.form.get("room", "")[:_LONGEST_NAME]
    irc = await page.irc()
    try:
        going = await speak(irc, room, page.form.get("text", ""))
    except NotSent as refused:
        note = " It may have been sent all the same: look before you send it again." if refused.uncertain else ""
        return page.refuse(f"{refused.reason}{note}")
    if going is not None:
        return page.go(going)
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
    seat = await page.seat()
    talk = seat.talks.known(page.form.get("room", ""))
    if talk is not None and talk.last is not None and talk.unread:
        with suppress(NotSent):
            await mark_read(seat.irc, talk, talk.last)
        seat.hub.tell("rooms", {})
    return Response(status_code=204)


def _badge(page: PageRequest) -> int:
    seat = page.web.seats.known(page.person.account)
    return seat.talks.calls if seat is not None else 0


VIEW = WebView(
    path="/rooms",
    title="Rooms",
    order=10,
    icon="rooms",
    badge=_badge,
    routes=[
        shown("/", _start),
        shown("/rooms", _list),
        done("/say", _say),
        done("/join", _join),
        done("/leave", _leave),
        done("/read", _read),
        shown("/rooms/{name:path}", _room),
    ],
)
