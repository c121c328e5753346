"""Nicks and channels: their grammar, their comparison (``fold``), and masks.

Names that differ in the case of ASCII letters are the same name. ``fold`` is the only function that decides this, and
whatever is keyed by a name is keyed by its folded form.
"""

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

_SEARCHED, _COMPARED = 500, 40

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
"""Names that people would take for the server, a supervisor, everybody or a human."""


def fold(name: str) -> str:
    """Return a name as names are compared: with A–Z in lower case (CASEMAPPING=ascii)."""
    return name.lower() if name.isascii() else name.translate(_FOLDED)


def is_channel(target: str) -> bool:
    """Return whether the target of a message is a channel, and not a nick."""
    return target[:1] == "#"


def valid_channel(name: str, limit: int = 64) -> bool:
    """Return whether a channel may have this name of at most ``limit`` bytes."""
    return (
        name[:1] == "#"
        and 1 < len(name) <= limit
        and _NOT_IN_CHANNEL.search(name) is None
        and len(name.encode()) <= limit
    )


def valid_nick(nick: str, limit: int = 32) -> bool:
    """Return whether the text is a nick (RFC 2812 §2.3.1) of at most ``limit`` characters.

    Nicks are ASCII, so that no two look alike.
    """
    return len(nick) <= limit and _NICK.fullmatch(nick) is not None


def valid_short_name(name: str) -> bool:
    """Return whether a server may have this short name, the first label of its name.

    It has no hyphen, since the short name, as a prefix of nicks, ends at the first hyphen.
    """
    return _SHORT_NAME.fullmatch(name) is not None


def short_name(server_name: str) -> str:
    """Return the first label of a server's name, which is the prefix of its users' nicks."""
    return server_name.partition(".")[0]


def owner(nick: str) -> str:
    """Return the short name of a nick's server: the text before the nick's first hyphen."""
    return nick.partition("-")[0]


def name_part(nick: str) -> str:
    """Return a nick without the prefix of its server; a nick without a prefix is unchanged."""
    return nick.partition("-")[2] or nick


def valid_local_nick(nick: str, server_short_name: str, limit: int = 32) -> bool:
    """Return whether the text is a nick ``<server>-<name>`` of the given server.

    The name does not begin with the server's prefix again (``spark-spark-ori``).
    """
    prefix, _, name = nick.partition("-")
    if len(nick) > limit or fold(prefix) != fold(server_short_name) or not _NAME_PART.fullmatch(name):
        return False
    return owner(name) == name or fold(owner(name)) != fold(server_short_name)


def reserved(nick: str) -> bool:
    """Return whether nobody may have this nick, as it or its name without prefix is reserved."""
    folded = fold(nick)
    return folded in RESERVED or name_part(folded) in RESERVED


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that a mistyped ``name`` probably means; None if none is similar.

    The server's prefix may be missing in ``name``.
    """
    folded_name = fold(name)
    part = name_part(folded_name).lstrip("#")
    by_part = {}
    # A typo must not cost more than a message: only likely candidates are compared in full.
    for candidate in islice(candidates, _SEARCHED):
        folded = fold(candidate)
        tail = name_part(folded).lstrip("#")
        if abs(len(tail) - len(part)) < 4 and (tail[:1] == part[:1] or tail[-1:] == part[-1:]):
            by_part[tail] = candidate
            if len(by_part) == _COMPARED:
                break
    # Compared without the prefix, which all names here have in common.
    close = get_close_matches(part, by_part, n=1)
    return by_part[close[0]] if close else None


def normal_mask(mask: str) -> str:
    """Return a ban mask in full: ``nick`` becomes ``nick!*@*``, ``u@host`` becomes ``*!u@host``."""
    nick, bang, rest = mask.partition("!")
    if not bang and "@" in nick:
        nick, rest = "", nick
    user, _, host = rest.partition("@")
    return f"{nick or '*'}!{user or '*'}@{host or '*'}"


def matches(mask: str, text: str) -> bool:
    """Return whether the text matches a mask with wildcards, ignoring case as IRC does.

    ``*`` is any text, ``?`` one character; ``\\*`` and ``\\?`` are these characters themselves. Any other backslash is
    a backslash, since nicks have them (RFC 2812 §2.5).
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
        # Between two stars the leftmost match is as good as any later one, so each is atomic: nothing is tried twice,
        # and no mask takes longer than its length times that of the text.
        *middle, last = pieces
        pattern += "".join(f"(?>.*?{piece})" for piece in middle) + ".*" + last
    return re.compile(pattern, re.DOTALL).fullmatch
