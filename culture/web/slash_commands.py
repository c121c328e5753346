"""What a person types into a room: a message, or a slash command such as ``/join #room``."""

from collections.abc import Awaitable, Callable

from culture.protocol.names import is_channel
from culture.transport import IRCTransport, NotSent
from culture.transport.requests import refusal
from culture.web.templates import room_path

HELP = "/me, /join, /part, /topic, /away, /msg; type // to send a text that begins with a slash"
_LONGEST = 20_000

NextPath = str | None
"""Path of the page to show next; None: stay on this one."""


async def send_input(irc: IRCTransport, room: str, text: str) -> NextPath:
    """Send what a person typed into a room: a message, or a slash command.

    Returns the path of the page to show next, or None to stay. ``NotSent`` is raised, with the reason, if it cannot be
    sent.
    """
    typed = text.strip("\n\r")
    if not typed.strip():
        raise NotSent("the message is empty")
    if len(typed) > _LONGEST:
        raise NotSent(f"the message is too long: {len(typed)} letters, the limit is {_LONGEST}")
    if typed.startswith("/") and not typed.startswith("//"):
        word, _, rest = typed[1:].partition(" ")
        command = _COMMANDS.get(word.lower())
        if command is None:
            raise NotSent(f"unknown command /{word}; the commands are {HELP}")
        return await command(irc, room, rest.strip())
    await irc.send_privmsg(room, typed.removeprefix("/") if typed.startswith("//") else typed)
    return None


async def run_verb(irc: IRCTransport, verb: str, *params: str) -> None:
    """Send an IRC command with ``params``; raise ``NotSent`` with the reason if it is refused."""
    error = refusal(await irc.request(verb, *params))
    if error is not None:
        raise error


async def _me(irc: IRCTransport, room: str, rest: str) -> NextPath:
    if not rest or "\n" in rest:
        raise NotSent("type an action in one line: /me waves")
    await run_verb(irc, "PRIVMSG", room, f"\x01ACTION {rest.replace(chr(1), '')}\x01")
    return None


async def _join(irc: IRCTransport, _room: str, rest: str) -> NextPath:
    name, _, key = rest.partition(" ")
    if not name:
        raise NotSent("name a room: /join #general")
    name = name if is_channel(name) else f"#{name}"
    await irc.join_channel(name, key.strip())
    return room_path(name)


async def _part(irc: IRCTransport, room: str, rest: str) -> NextPath:
    name, _, reason = rest.partition(" ")
    if not is_channel(name):
        name, reason = room, rest
    if not is_channel(name):
        raise NotSent("/part is for rooms; a private conversation cannot be left")
    await irc.part_channel(name, reason)
    return "/rooms"


async def _topic(irc: IRCTransport, room: str, rest: str) -> NextPath:
    if not is_channel(room):
        raise NotSent("only rooms have a topic")
    await run_verb(irc, "TOPIC", room, rest)
    return None


async def _away(irc: IRCTransport, _room: str, rest: str) -> NextPath:
    await irc.set_away(rest)
    return None


async def _msg(irc: IRCTransport, _room: str, rest: str) -> NextPath:
    nick, _, text = rest.partition(" ")
    if not nick or not text.strip():
        raise NotSent("type a nick and a text: /msg spark-ori hello")
    await irc.send_privmsg(nick, text.strip())
    return room_path(nick)


_COMMANDS: dict[str, Callable[[IRCTransport, str, str], Awaitable[NextPath]]] = {
    "me": _me,
    "join": _join,
    "part": _part,
    "topic": _topic,
    "away": _away,
    "msg": _msg,
}
