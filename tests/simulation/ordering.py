"""The one thing that a runtime cannot replace: the order of a set of objects, which is that of their addresses.

A set is iterated in the order of the hashes of its elements. For strings that depends on PYTHONHASHSEED, and no set of
strings decides anything here (a test runs a seed under two of them). An object's own hash is its address, which
differs from run to run. So these classes get a number as their hash, in the order in which they are first hashed; the
product is not told, and its code is the same.
"""

from culture.federation.link import Link
from culture.federation.peer import Peer
from culture.server.core.session import Session
from culture.server.core.state import Channel, User
from culture.server.net.connection import ClientConnection

_KINDS = (User, Channel, Session, ClientConnection, Peer, Link)
_numbers: dict[int, int] = {}
_kept: list[object] = []  # so that no address is used twice


def number_objects() -> None:
    """Give the objects of these classes repeatable hashes, in this process."""
    for kind in _KINDS:
        assert kind.__eq__ is object.__eq__, kind
        kind.__hash__ = _number  # type: ignore[method-assign]


def _number(self: object) -> int:
    number = _numbers.get(id(self))
    if number is None:
        number = _numbers[id(self)] = len(_numbers) + 1
        _kept.append(self)
    return number
