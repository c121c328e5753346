"""Where the history is kept: what every store does, whichever database is behind it."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol
from zlib import crc32

from culture.skills.history.entry import Entry
from culture.skills.history.words import Query

TIES = 10  # bits of a position that tell apart what happened in the same microsecond
OWN_TIES = 4  # those of them that tell apart what happened on the same server
LATEST = (1 << 53) - (1 << 30)
"""The last time there is (in the year 2255): positions are numbers of 64 bits, and behind it is room for ties."""


ASIDE = "\x1f"
"""In the key of a place that holds what a channel's name was used for before, behind closed doors."""


class Unavailable(Exception):
    """The store cannot be written or read right now: locked, full, or not to be reached. Trying again may help."""


class Misconfigured(Exception):
    """The store is not to be had as the configuration says. The text tells why, and no password."""


class Damaged(Exception):
    """What is kept there cannot be read any more as what it was."""


class TooSlow(Exception):
    """The search was given up."""


class Kept(NamedTuple):
    """An entry and its position: positions order all entries by time, and each is one entry's alone."""

    position: int
    entry: Entry


class Arrival(NamedTuple):
    """When an entry came: behind what is up to a position, and as which of those that came late.

    Who came in time came behind itself, and is number 0: so these order all entries as they came.
    """

    behind: int
    number: int = 0


class Missed(NamedTuple):
    """An entry and when it came."""

    arrival: Arrival
    kept: Kept


class View(NamedTuple):
    """What of a place a reader may see."""

    place: str
    ranks: tuple[str, ...] = ("",)
    """Messages for these ranks."""
    closed_since: int | None = None
    """What was said while not everybody could be there: from this time on (microseconds), or None of it."""
    since: int = 0
    """Nothing from before this time (microseconds)."""
    events: bool = False
    """Other events than messages too."""


class Talk(NamedTuple):
    """A place with something in it: the channel's name or the other's last nick, the time of the last message."""

    name: str
    at: int
    place: str = ""


class Stats(NamedTuple):
    """How much there is in a place."""

    name: str
    messages: int
    events: int
    bytes: int
    first: int
    last: int


class Gap(NamedTuple):
    """So many messages between two times could not be kept."""

    since: int
    until: int
    lost: int


class Store(Protocol):
    """Entries, each once, in the order of their time.

    Every method blocks, and is called from threads of the history's own: ``write`` always from the same one,
    the others from any. What cannot be done now is ``Unavailable``.
    """

    def open(self) -> None:
        """Make ready, with a schema as new as this program."""

    def close(self) -> None:
        """Let go of it."""

    def write(self, batch: Sequence[Entry]) -> set[str]:
        """Keep them all, durably, or none. One that is there already stays as it is.

        The ids of those messages of the batch that are not kept, since another text is kept under their id.
        A REDACT also takes back the message it names, now and should it come later: one of the same channel, or a
        private one, whatever the two were called when it was said.
        """

    def reopen(self, messages: Sequence[tuple[str, str]]) -> None:
        """These messages (place and id) were said in an open channel: what was kept of them as closed is so no more.

        What was said to a rank stays closed.
        """

    def move(self, old: str, new: str, name: str) -> None:
        """A channel has another name; what the new name had before stays, but for what was said behind closed doors."""

    def page(self, view: View, after: int | None, before: int | None, limit: int, newest: bool) -> list[Kept]:
        """Up to so many between two positions (both left out), oldest first; the newest of them or the oldest."""

    def position(self, place: str, msgid: str) -> int | None:
        """Where the message is, whoever asks."""

    def locate(self, view: View, msgid: str) -> int | None:
        """The same, or where it was before it was taken back, if the reader may know of it."""

    def search(self, view: View, query: Query, limit: int, seconds: float) -> list[Kept]:
        """The newest messages that fit, oldest first; TooSlow when it takes longer than so many seconds."""

    def get(self, view: View, positions: Sequence[int]) -> list[Kept]:
        """Those of these messages that may be seen, in the order asked for."""

    def messages(self, after: int, limit: int) -> list[Kept]:
        """Up to so many messages of all channels behind a position, oldest first."""

    def talks(self, party: str, since: int, channels: Sequence[View], after: int, before: int) -> list[Talk]:
        """The party's conversations and of these channels those whose last message is between two times.

        TooSlow when that takes seconds.
        """

    def arrivals(self, msgid: str) -> dict[str, Arrival]:
        """When the message came to this server, or what is left of it, by the place that it came to."""

    def since(self, at: int) -> Arrival:
        """Behind this is everything that came to this server since a time (microseconds), and some from before it."""

    def missed(self, views: Sequence[View], after: Arrival, limit: int) -> list[Missed]:
        """Up to so many messages that came to this server behind another, in the order in which they came."""

    def exists(self, place: str) -> bool:
        """Was anything ever kept there?"""

    def stats(self) -> list[Stats]:
        """Every channel, and the private conversations together under the name ``*``."""

    def everything(self, place: str | None = None) -> Iterator[Kept]:
        """All entries of a place or of all places, private ones too, oldest first."""

    def prune(self, place: str | None, before: int) -> int:
        """Remove what is older in a channel, or (None) in all private conversations; how many were removed."""

    def cutoff(self, place: str | None, size: int) -> int | None:
        """The time before which to prune so that at most so many bytes of a place remain; None if no more are there."""

    def note_gap(self, since: int, until: int, lost: int) -> None:
        """Remember that messages between two times were lost to the history."""

    def gaps(self) -> list[Gap]:
        """When messages were lost, the oldest first."""

    def verify(self) -> Iterable[str]:
        """Look through everything; each problem found. Gaps are none: what is there is whole."""


def position_at(at: int) -> int:
    """The first position of a time; those that cannot be are the first or the last there is."""
    return at << TIES if 0 <= at <= LATEST else (0 if at < 0 else LATEST << TIES)


def position_of(at: int, origin: str) -> int:
    """The first position of a time for what was said on this server.

    Each server has its own places in a microsecond, the same everywhere: so what two said in one is in the same order
    on all, whichever came first.
    """
    return position_at(at) + _own_places(origin)


@lru_cache(maxsize=1_000)
def _own_places(origin: str) -> int:
    return (crc32(origin.encode()) & ((1 << TIES - OWN_TIES) - 1)) << OWN_TIES


def time_of(position: int) -> int:
    """The time of a position (microseconds)."""
    return position >> TIES
