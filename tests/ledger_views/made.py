"""Facts for tests: as our daemons say them, and as anybody might."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from culture.ledger_views.ledger import LedgerFact
from culture.protocol.vocabulary import FactKind

NOW = datetime(2026, 3, 19, 12, tzinfo=UTC)

_NAMES = [
    "state",
    "task",
    "since",
    "backend",
    "tokens",
    "cost-usd",
    "context-pct",
    "unread",
    "stale",
    "open",
    "asked",
    "deadline",
    "place",
    "text",
    "options",
    "who",
    "outcome",
    "by",
    "class",
    "choice",
    "began",
    "ended",
    "cost_usd",
    "event",
    "manager",
    "channel",
    "branch",
    "said",
    "shifts",
    "lag_ms",
    "behind",
    "members",
]
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
_TIMES = st.datetimes().map(datetime.isoformat) | st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat)
_ANYTHING = _SCALARS | _TIMES | st.lists(_SCALARS, max_size=3) | st.dictionaries(st.text(max_size=3), _SCALARS)
NONSENSE = st.lists(
    st.builds(
        LedgerFact,
        st.sampled_from(["spark-a", "Spark-A", "thor-b", "spark", "thor"]),
        st.sampled_from([*map(str, FactKind), "link", "strange"]),
        st.sampled_from(["now", "q7", "turn-1", "t1", "spark", "thor", "-", "agent_error-1"]),
        st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31), timezones=st.just(UTC)),
        st.sampled_from(["spark", "thor"]),
        st.dictionaries(st.sampled_from(_NAMES) | st.text(max_size=5), _ANYTHING, max_size=12),
    ),
    max_size=8,
)
"""Whatever agents like to say."""


def fact(nick: str, kind: str, key: str, value: dict[str, Any], ago: float = 0.0) -> LedgerFact:
    """A fact that was said so many seconds ago."""
    return LedgerFact(nick, kind, key, NOW - timedelta(seconds=ago), nick.partition("-")[0], value)


def moment(ago: float) -> str:
    """The time of so many seconds ago, as facts tell it."""
    return (NOW - timedelta(seconds=ago)).isoformat(timespec="milliseconds")
