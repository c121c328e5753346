"""What somebody types into a room: words, or a command that begins with a slash."""

from collections.abc import Awaitable, Callable

from culture.protocol.names import is_channel
from culture.transport import IRCTransport, NotSent
from culture.transport.requests import refusal
from culture.web.templates import room_path

HELP = "/me, /join, /part, /topic, /away, /msg; two slashes begin a text with one"
_LONGEST = 20_000

Going = str | None
"""Where to go next; None: stay."""


async def speak(irc: IRCTransport, room: str, text: str) -> Going:
    """Do what was typed; ``NotSent`` with the server's words, or with what is wrong."""
    typed = text.strip("\n\r")
    if not typed.strip():
        raise NotSent("there is nothing to say")
    if len(typed) > _LONGEST:
        raise NotSent(f"this has {len(typed)} letters, and {_LONGEST} fit")
    if typed.startswith("/") and not typed.startswith("//"):
        word, _, rest = typed[1:].partition(" ")
        command = _COMMANDS.get(word.lower())
        if command is None:
            raise NotSent(f"there is no command /{word}, only {HELP}")
        return await command(irc, room, rest.strip())
    await irc.send_privmsg(room, typed.removeprefix("/") if typed.startswith("//") else typed)
    return None


async def ask(irc: IRCTransport, verb: str, *params: str) -> None:
    """A command of which only the refusal is of interest."""
    refused = refusal(await irc.request(verb, *params))
    if refused is not None:
        raise refused


async def _me(irc: IRCTransport, room: str, rest: str) -> Going:
    if not rest or "\n" in rest:
        raise NotSent("say what you do, in one line: /me waves")
    await ask(irc, "PRIVMSG", room, f"\x01ACTION {rest.replace(chr(1), '')}\x01")
    return None


async def _join(irc: IRCTransport, _room: str, rest: str) -> Going:
    name, _, key = rest.partition(" ")
    if not name:
        raise NotSent("say which room: /join #general")
    name = name if is_channel(name) else f"#{name}"
    await irc.join_channel(name, key.strip())
    return room_path(name)


async def _part(irc: IRCTransport, room: str, rest: str) -> Going:
    name, _, reason = rest.partition(" ")
    if not is_channel(name):
        name, reason = room, rest
    if not is_channel(name):
        raise NotSent("this is no room, and a conversation needs no end")
    await irc.part_channel(name, reason)
    return "/rooms"


async def _topic(irc: IRCTransport, room: str, rest: str) -> Going:
    if not is_channel(room):
        raise NotSent("only rooms have a topic")
    await ask(irc, "TOPIC", room, rest)
    return None


async def _away(irc: IRCTransport, _room: str, rest: str) -> Going:
    await irc.set_away(rest)
    return None


async def _msg(irc: IRCTransport, _room: str, rest: str) -> Going:
    nick, _, text = rest.partition(" ")
    if not nick or not text.strip():
        raise NotSent("say to whom, and what: /msg spark-ori hello")
    await irc.send_privmsg(nick, text.strip())
    return room_path(nick)


_COMMANDS: dict[str, Callable[[IRCTransport, str, str], Awaitable[Going]]] = {
    "me": _me,
    "join": _join,
    "part": _part,
    "topic": _topic,
    "away": _away,
    "msg": _msg,
}
