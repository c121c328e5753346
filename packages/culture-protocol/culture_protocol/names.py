"""The grammar of nicks and channels, how they compare, and which of them a mask means."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache

_FOLDED = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")

_NICK = re.compile(r"[A-Za-z\[\]\\`_^{}|][A-Za-z0-9\[\]\\`_^{}|-]*")
_NAME_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_SHORT_NAME = re.compile(r"[a-z][a-z0-9]{0,11}")
_NOT_IN_CHANNEL = re.compile(r"[\x00-\x20\x7f,]")

RESERVED = frozenset({"*", "all", "anyone", "everybody", "everyone", "here", "human", "humans", "operator", "server"})
"""What nobody may be called: it would read as the server, as everybody, or as the fact of being a person."""


def fold(name: str) -> str:
    """The form in which names compare (``CASEMAPPING=ascii``: only A–Z fold)."""
    return name.lower() if name.isascii() else name.translate(_FOLDED)


def is_channel(target: str) -> bool:
    """Whether a target is meant as a channel."""
    return target[:1] == "#"


def valid_channel(name: str, limit: int = 64) -> bool:
    """Whether a channel may have this name."""
    return name[:1] == "#" and 1 < len(name) <= limit and not _NOT_IN_CHANNEL.search(name)


def valid_nick(nick: str, limit: int = 32) -> bool:
    """Whether this is a nick where no prefix is demanded (RFC 2812 §2.3.1; ASCII, so that no two look alike)."""
    return len(nick) <= limit and _NICK.fullmatch(nick) is not None


def valid_short_name(name: str) -> bool:
    """Whether a server may go by this first label; a hyphen would make the owner of a nick ambiguous."""
    return _SHORT_NAME.fullmatch(name) is not None


def short_name(server_name: str) -> str:
    """The first label of a server's name: the prefix of its nicks."""
    return server_name.partition(".")[0]


def owner(nick: str) -> str:
    """The server a nick belongs to: the text before its first hyphen."""
    return nick.partition("-")[0]


def name_part(nick: str) -> str:
    """The name behind the server's prefix; the nick itself where there is no prefix."""
    before, hyphen, after = nick.partition("-")
    return after if hyphen else before


def valid_local_nick(nick: str, server_short_name: str, limit: int = 32) -> bool:
    """Whether this is ``<server>-<name>`` for the given server."""
    prefix, _, name = nick.partition("-")
    return len(nick) <= limit and fold(prefix) == fold(server_short_name) and _NAME_PART.fullmatch(name) is not None


def reserved(nick: str) -> bool:
    """Whether the nick, or the name part of it, would be mistaken for something else."""
    folded = fold(nick)
    return folded in RESERVED or name_part(folded) in RESERVED


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """What somebody who wrote ``name`` probably meant; None when nothing is close."""
    by_fold = {fold(candidate): candidate for candidate in candidates}
    close = get_close_matches(fold(name), by_fold, n=1)
    return by_fold[close[0]] if close else None


def normal_mask(mask: str) -> str:
    """A ban mask in full: ``nick`` → ``nick!*@*``, ``user@host`` → ``*!user@host``."""
    nick, bang, rest = mask.partition("!")
    if not bang and "@" in nick:
        nick, rest = "", nick
    user, _, host = rest.partition("@")
    return f"{nick or '*'}!{user or '*'}@{host or '*'}"


def matches(mask: str, text: str) -> bool:
    """Whether ``text`` is one the glob ``mask`` (``*``, ``?``, ``\\`` escapes) stands for, by folded case."""
    return _compiled(mask).matches(text)


class Mask:
    """A glob made ready for many comparisons, each in time linear in mask × text at the worst."""

    __slots__ = ("_first", "_last", "_middle", "_minimum", "_whole")

    def __init__(self, mask: str) -> None:
        pieces = [_piece(piece) for piece in _pieces(fold(mask))]
        self._whole = len(pieces) == 1
        self._first, self._last, self._middle = pieces[0], pieces[-1], [p for p in pieces[1:-1] if p.length]
        self._minimum = sum(piece.length for piece in pieces)

    def matches(self, text: str) -> bool:
        """Whether the whole of ``text`` fits."""
        text = fold(text)
        if self._whole:
            return len(text) == self._minimum and self._first.at(text, 0)
        end = len(text) - self._last.length
        if len(text) < self._minimum or not self._first.at(text, 0) or not self._last.at(text, end):
            return False
        # Between two stars the leftmost fit is always as good as any later one: nothing is ever tried twice.
        position = self._first.length
        for piece in self._middle:
            position = piece.find(text, position, end)
            if position < 0:
                return False
            position += piece.length
        return position <= end
