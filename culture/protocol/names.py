"""The grammar of nicks and channels, how they compare, and which of them a mask means."""

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice

_FOLDED = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")

_NICK = re.compile(r"[A-Za-z\[\]\\`_^{}|][A-Za-z0-9\[\]\\`_^{}|-]*")
_NAME_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_SHORT_NAME = re.compile(r"[a-z][a-z0-9]{0,11}")
_NOT_IN_CHANNEL = re.compile(r"[\x00-\x20\x7f-\x9f,\ud800-\udfff]")

_GLOB = re.compile(r"\\[*?]|\*+|.", re.DOTALL)

_LOOKED_AT, _COMPARED = 500, 40

RESERVED = frozenset(
    {
        "*",
        "all",
        "chanserv",
        "everyone",
        "here",
        "human",
        "humans",
        "irc",
        "nickserv",
        "server",
        "supervisor",
        "system",
    },
)
"""Names that would read as the server, a supervisor, everybody, or as the fact of being a person."""


def fold(name: str) -> str:
    """The form in which names compare (``CASEMAPPING=ascii``: only A–Z fold)."""
    return name.lower() if name.isascii() else name.translate(_FOLDED)


def is_channel(target: str) -> bool:
    """Whether a target is meant as a channel."""
    return target[:1] == "#"


def valid_channel(name: str, limit: int = 64) -> bool:
    """Whether a channel may have this name; the limit is in bytes, as that is what a line has room for."""
    return (
        name[:1] == "#"
        and 1 < len(name) <= limit
        and _NOT_IN_CHANNEL.search(name) is None
        and len(name.encode()) <= limit
    )


def valid_nick(nick: str, limit: int = 32) -> bool:
    """Whether this is a nick where no prefix is demanded (RFC 2812 §2.3.1; ASCII, so that no two look alike)."""
    return len(nick) <= limit and _NICK.fullmatch(nick) is not None


def valid_short_name(name: str) -> bool:
    """Whether a server may go by this first label; a hyphen in it would make the owner of a nick ambiguous."""
    return _SHORT_NAME.fullmatch(name) is not None


def short_name(server_name: str) -> str:
    """The first label of a server's name: the prefix of its nicks."""
    return server_name.partition(".")[0]


def owner(nick: str) -> str:
    """The server a nick belongs to: the text before its first hyphen."""
    return nick.partition("-")[0]


def name_part(nick: str) -> str:
    """The name behind the server's prefix; the nick itself where there is no prefix."""
    return nick.partition("-")[2] or nick


def valid_local_nick(nick: str, server_short_name: str, limit: int = 32) -> bool:
    """Whether this is ``<server>-<name>`` for the given server; ``spark-spark-ori`` would read as somebody else."""
    prefix, _, name = nick.partition("-")
    if len(nick) > limit or fold(prefix) != fold(server_short_name) or not _NAME_PART.fullmatch(name):
        return False
    return owner(name) == name or fold(owner(name)) != fold(server_short_name)


def reserved(nick: str) -> bool:
    """Whether the nick, or the name part of it, would be mistaken for something else."""
    folded = fold(nick)
    return folded in RESERVED or name_part(folded) in RESERVED


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """What somebody who wrote ``name`` probably meant, the server's prefix left out or not; None when unclear."""
    wanted = fold(name)
    part = name_part(wanted).lstrip("#")
    by_part = {}
    # A typo must not cost the server more than a message does, so only the likely ones are compared in full.
    for candidate in islice(candidates, _LOOKED_AT):
        folded = fold(candidate)
        tail = name_part(folded).lstrip("#")
        if abs(len(tail) - len(part)) < 4 and (tail[:1] == part[:1] or tail[-1:] == part[-1:]):
            by_part[tail] = candidate
            if len(by_part) == _COMPARED:
                break
    # The names without the prefix: what everybody here has in common says nothing.
    close = get_close_matches(part, by_part, n=1)
    return by_part[close[0]] if close else None


def normal_mask(mask: str) -> str:
    """A ban mask in full: ``nick`` → ``nick!*@*``, ``user@host`` → ``*!user@host``."""
    nick, bang, rest = mask.partition("!")
    if not bang and "@" in nick:
        nick, rest = "", nick
    user, _, host = rest.partition("@")
    return f"{nick or '*'}!{user or '*'}@{host or '*'}"


def matches(mask: str, text: str) -> bool:
    """Whether the glob ``mask`` stands for ``text``, letters compared as in names.

    ``*`` is any text, ``?`` one character; ``\\*`` and ``\\?`` are these characters themselves. A backslash
    elsewhere is a backslash, since nicks have them (RFC 2812 §2.5).
    """
    return _compiled(fold(mask))(fold(text)) is not None


@lru_cache(maxsize=4096)
def _compiled(mask: str) -> Callable[[str], re.Match[str] | None]:
    pieces = [""]
    for token in _GLOB.findall(mask):
        if token[0] == "*":
            pieces.append("")
        else:
            pieces[-1] += "." if token == "?" else re.escape(token[-1])
    pattern = pieces.pop(0)
    if pieces:
        # Between two stars the leftmost fit is as good as any later one, so each is atomic: nothing is tried twice,
        # and no mask takes longer than its length times that of the text.
        *middle, last = pieces
        pattern += "".join(f"(?>.*?{piece})" for piece in middle) + ".*" + last
    return re.compile(pattern, re.DOTALL).fullmatch
