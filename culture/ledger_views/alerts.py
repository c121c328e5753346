"""Alerts of agents (errors, timeouts and others), from the ``alert`` facts."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from culture.ledger_views import safe_values
from culture.ledger_views.ledger import LedgerFact
from culture.protocol.vocabulary import FactKind

_LONGEST_WORD = 40
_GRAVE = frozenset({"agent_error", "agent_timeout"})
_ODD = frozenset({"agent_spiraling"})


@dataclass(frozen=True, slots=True)
class AlertView:
    """One alert that an agent has published in the ledger."""

    nick: str
    key: str
    event: str
    text: str
    """Empty if the alert is about a private task."""
    at: datetime
    server: str

    @property
    def gravity(self) -> str:
        """Severity of the alert, by the kind of its event: ``error``, ``warning`` or ``info``."""
        return "error" if self.event in _GRAVE else "warning" if self.event in _ODD else "info"


def alerts(facts: Iterable[LedgerFact], since: datetime | None = None) -> list[AlertView]:
    """Return the alerts among the facts, newest first; ``since``: only later ones, None for all."""
    views = [
        AlertView(
            fact.nick,
            fact.key,
            safe_values.text(fact.value, "event", _LONGEST_WORD) or fact.key.partition("-")[0] or fact.key,
            safe_values.text(fact.value, "text"),
            fact.at,
            fact.server,
        )
        for fact in facts
        if fact.kind == FactKind.ALERT and (since is None or fact.at >= since)
    ]
    return sorted(views, key=lambda alert: (alert.at, alert.nick, alert.key), reverse=True)
