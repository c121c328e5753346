"""Channels of one name that were founded twice: the earlier founding holds, with its ranks and its modes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import NamedTuple

from culture.config.model import CHANNEL_FLAGS
from culture.federation.settings import RANK_PARTS, base_flags, founded
from culture.protocol.modes import ModeChange
from culture.protocol.names import fold
from culture.server.core.changes.channels import UNMARKED
from culture.server.core.ids import MICROSECONDS
from culture.server.core.network import Network
from culture.server.core.state import Channel
from culture.server.events import ModeSet
from culture.server.skill import Host

FLAGS = frozenset(CHANNEL_FLAGS)
_FRESH = 30.0
_MOST_AHEAD, _PER_CHANNEL = 10_000, 8
_AT_ONCE = 12


class Verdict(Enum):
    """Which of two foundings of a channel holds: they may be the same, else the one of them that was earlier."""

    SAME = "same"
    NEW = "new"
    """We know of none: what else the other side has set, it has to say."""
    OURS = "ours"
    THEIRS = "theirs"


class Claim(NamedTuple):
    """When a server says that a channel was founded (microseconds), and with which modes."""

    founded: int
    flags: str

    @classmethod
    def of(cls, channel: Channel) -> "Claim":
        """What we say of it."""
        return cls(founded(channel), base_flags(channel))


def begin(host: Host, name: str, claim: Claim) -> None:
    """The channel is new here, and the same as elsewhere."""
    channel = host.network.channel(name)
    if channel is not None and claim.founded:
        channel.founded = claim.founded / MICROSECONDS
        set_unmarked(host, channel, _base(channel, frozenset(claim.flags)))
    _catch_up(host, name)


def _catch_up(host: Host, name: str) -> None:
    """Take what was told of the channel before."""
    for at, take in host.network.ahead.pop(fold(name), ()):
        if host.now() - at < _FRESH:
            take()


def keep(host: Host, name: str, take: Callable[[], object]) -> None:
    """Nobody in the channel is known here yet: they may be on their way, from another server."""
    ahead, key = host.network.ahead, fold(name)
    if key in ahead or len(ahead) < _MOST_AHEAD:
        ahead[key] = [*ahead.get(key, ())[-_PER_CHANNEL:], (host.now(), take)]


def settle(host: Host, name: str, claim: Claim) -> Verdict:
    """Which founding holds, theirs or ours? Where it is theirs, the ranks that were given under ours are lost."""
    channel = host.network.channel(name)
    if channel is None or not claim.founded or claim.founded == founded(channel):
        return Verdict.SAME
    if claim.founded > founded(channel):
        return Verdict.OURS
    found_anew(host, channel, claim)
    return Verdict.THEIRS


def found_anew(host: Host, channel: Channel, claim: Claim) -> None:
    """Another founding holds than the one we know: the ranks that were given under that are lost."""
    ranked = [(user.nick, rank) for user, rank in channel.members.items() if rank]
    lost = [ModeChange(False, mode, nick) for nick, rank in ranked for mode in rank]
    channel.founded = claim.founded / MICROSECONDS
    set_unmarked(host, channel, [*lost, *_base(channel, frozenset(claim.flags))])
    for part in [part for part in channel.marks if part.startswith(RANK_PARTS)]:
        del channel.marks[part]
    channel.absent.clear()
    channel.joins.clear()
    _catch_up(host, channel.name)


@contextmanager
def unmarked(network: Network) -> Iterator[None]:
    """What happens in here follows from what happened elsewhere, and is no change of its own."""
    before, network.version = network.version, UNMARKED
    try:
        yield
    finally:
        network.version = before


def _base(channel: Channel, flags: frozenset[str]) -> list[ModeChange]:
    """The modes of a channel that nobody has set since it was founded."""
    unset = [flag for flag in FLAGS if flag not in channel.marks and (flag in flags) != (flag in channel.flags)]
    return [ModeChange(flag in flags, flag) for flag in sorted(unset)]


def set_unmarked(host: Host, channel: Channel, changes: Sequence[ModeChange]) -> None:
    """Set modes that get no mark by it."""
    if not changes:
        return
    with unmarked(host.network):
        for start in range(0, len(changes), _AT_ONCE):
            some = tuple(changes[start : start + _AT_ONCE])
            host.publish(ModeSet(host.stamp(), host.name, channel.name, some))
