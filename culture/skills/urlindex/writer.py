"""What waits to be written of the links."""

from collections.abc import Callable

from culture.runtime import REAL, Runtime
from culture.skills.keeping import AGAIN, Keeping
from culture.skills.urlindex.facts import Fact, MessageWithLinks
from culture.skills.urlindex.store import UrlIndexStore

MOST = 5_000
"""So many messages may wait; twice as many facts in all, since what is taken back should not be forgotten."""


class UrlIndexWriter(Keeping[Fact, UrlIndexStore]):
    """Messages with links, and what becomes of them."""

    def __init__(
        self,
        open_store: Callable[[], UrlIndexStore],
        tell: Callable[[str], None],
        failed: Callable[[BaseException], None],
        again: float = AGAIN,
        runtime: Runtime = REAL,
    ) -> None:
        super().__init__("messages with links", MOST, open_store, tell, failed, again, runtime=runtime)

    def most_before(self, fact: Fact) -> int:
        """A message has less room than what is said of others."""
        return MOST if isinstance(fact, MessageWithLinks) else 2 * MOST
