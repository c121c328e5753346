"""LIST: the channels, filtered (RFC 2812 §3.2.6, ELIST=CMNTU)."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from culture.protocol.message import Message
from culture.protocol.names import matches
from culture.protocol.numerics import Numeric
from culture.server.commands import command
from culture.server.context import Context
from culture.server.core.network import Network
from culture.server.core.state import Channel
from culture.server.core.visibility import sees_channel

_CONDITION = re.compile(r"([CT]?)([<>])([0-9]{1,9})", re.IGNORECASE)
_MINUTE = 60.0


class ListCondition(NamedTuple):
    """A condition of LIST on members (""), minutes since creation (C) or since the topic (T)."""

    what: str
    more: bool
    value: int

    def holds(self, channel: Channel, now: float) -> bool:
        """Return whether the channel meets the condition at the time ``now``."""
        if self.what == "":
            actual: float = len(channel.members)
        elif self.what == "C":
            actual = (now - channel.created) / _MINUTE
        elif channel.topic is not None:
            actual = (now - channel.topic.at) / _MINUTE
        else:
            return False
        return actual > self.value if self.more else actual < self.value


class Filter(NamedTuple):
    """The filter of a LIST: a channel fits a mask, none of ``without``, and every condition."""

    masks: tuple[str, ...]
    without: tuple[str, ...]
    conditions: tuple[ListCondition, ...]

    @classmethod
    def parse(cls, words: Iterable[str]) -> "Filter":
        """Parse a filter's words: ``#name``, ``*mask*``, ``!*mask*``, ``>3``, ``C<60``, ``T>60``."""
        masks, without, conditions = [], [], []
        for word in words:
            if condition := _CONDITION.fullmatch(word):
                conditions.append(ListCondition(condition[1].upper(), condition[2] == ">", int(condition[3])))
            elif word.startswith("!"):
                without.append(word[1:])
            elif word:
                masks.append(word)
        return cls(tuple(masks), tuple(without), tuple(conditions))

    def fits(self, channel: Channel, now: float) -> bool:
        """Return whether the channel passes the filter at the time ``now``."""
        return (
            (not self.masks or any(matches(mask, channel.name) for mask in self.masks))
            and not any(matches(mask, channel.name) for mask in self.without)
            and all(condition.holds(channel, now) for condition in self.conditions)
        )

    def candidates(self, network: Network) -> list[Channel]:
        """Return the channels to be filtered: those named, or all if there is a mask with wildcards."""
        if not self.masks or any("*" in mask or "?" in mask for mask in self.masks):
            return list(network.channels.values())
        exact = (network.channel(name) for name in self.masks)
        return list(dict.fromkeys(channel for channel in exact if channel is not None))


@command("LIST")
def listing(ctx: Context, message: Message) -> None:
    """``LIST [#channel,*mask*,!*mask*,>users,C<minutes,T>minutes]``: list channels.

    Each line has a channel's size and topic. < and > choose by the number of members, with C by the channel's age, with
    T by the age of its topic.
    """
    query = Filter.parse(word for param in message.params for word in param.split(","))
    ctx.pull([ctx.numeric(Numeric.RPL_LISTSTART, "Channel")])
    ctx.pull(ctx.bounded(_rows(ctx, query), "LIST"))
    ctx.pull([ctx.numeric(Numeric.RPL_LISTEND)])


def _rows(ctx: Context, query: Filter) -> Iterator[Message]:
    for channel in query.candidates(ctx.network):
        # The answer takes as long as the client reads it: the channel may be gone or hidden by now.
        exists = ctx.network.channel(channel.name) is channel
        is_shown = exists and (channel.members or channel.standing) and sees_channel(ctx.user, channel)
        if is_shown and query.fits(channel, ctx.now()):
            topic = channel.topic.text if channel.topic is not None else ""
            yield ctx.numeric(Numeric.RPL_LIST, channel.name, str(len(channel.members)), topic)
