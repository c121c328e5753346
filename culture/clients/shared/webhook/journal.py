"""What was decided and not yet told, on disk: an alert that a crash cut off is known of afterwards."""

import logging
import sqlite3
from dataclasses import dataclass

from culture.clients.shared.records import Records
from culture.clients.shared.webhook.alerts import Alert
from culture.runtime import REAL, Runtime

log = logging.getLogger(__name__)

KEPT_SECONDS = 7 * 86400.0
"""So long the status tells of alerts of which nobody knows whether they arrived."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Alerts to one place that may have arrived or not."""

    place: str
    event: str
    text: str
    count: int


class Journal:
    """One row for each bundle that waits or is under way; it goes when its fate is known.

    An alert matters more than a note of it: on a full disk it is told all the same.
    """

    def __init__(self, records: Records, *, runtime: Runtime = REAL) -> None:
        self._records = records
        self._clock = runtime.now

    def decided(self, place: str, alert: Alert) -> int:
        """An alert is to be told there; the number of its row."""
        values = (place, alert.event, alert.text, self._clock())
        return self._note("INSERT INTO alerts (place, event, text, decided) VALUES (?, ?, ?, ?)", *values)

    def joined(self, number: int) -> None:
        """One more alert goes with that row."""
        self._note("UPDATE alerts SET count = count + 1 WHERE number = ?", number)

    def settled(self, number: int) -> None:
        """It was told, or it is known that it was not."""
        self._note("DELETE FROM alerts WHERE number = ?", number)

    def _note(self, change: str, *values: object) -> int:
        try:
            return self._records.execute(change, values).lastrowid or 0
        except sqlite3.Error as error:
            log.error("an alert cannot be noted: %s", error)
            return 0

    def recover(self) -> list[Unknown]:
        """After a start: what the last run left. It may have been sent, so it is not sent again."""
        with self._records.change() as records:
            rows = records.execute(
                "SELECT place, event, text, count FROM alerts WHERE state = 'open' ORDER BY number"
            ).fetchall()
            records.execute("UPDATE alerts SET state = 'unknown' WHERE state = 'open'")
            records.execute("DELETE FROM alerts WHERE decided < ?", (self._clock() - KEPT_SECONDS,))
        return [Unknown(*row) for row in rows]

    def unknown(self) -> int:
        """Of how many alerts of earlier runs nobody knows whether they arrived."""
        row = self._records.execute("SELECT coalesce(sum(count), 0) FROM alerts WHERE state = 'unknown'").fetchone()
        return int(row[0])
