"""What the server is still to be told of an agent, on disk.

The database itself notes it, in the transaction in which a message, a turn or a question changes: whatever
kills the daemon, nothing is told that did not happen, and nothing that happened is forgotten.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from culture.clients.shared.records import Records
from culture.protocol.vocabulary import FactKind, Receipt

MOST = 20_000
"""So many reports wait at most; the oldest give way."""
_AT_ONCE = 12  # messages in one RECEIPT
_ADD = "INSERT INTO reports (kind, key, place, text) VALUES"
_DELIVERED, _INJECTED, _ANSWERED = (
    f"{_ADD} ('{FactKind.RECEIPT}', NEW.msgid, NEW.place, '{state}')"
    for state in (Receipt.DELIVERED, Receipt.INJECTED, Receipt.ANSWERED)
)
_KNOWN = "NEW.msgid NOT LIKE 'local.%'"  # what a server without ids said cannot be spoken of
_STATEMENTS = (
    "CREATE TABLE IF NOT EXISTS reports (number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL,"
    " key TEXT NOT NULL, place TEXT NOT NULL, text TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS reports_by_key ON reports (kind, key)",
    f"CREATE TRIGGER IF NOT EXISTS report_delivered AFTER INSERT ON messages WHEN {_KNOWN} BEGIN {_DELIVERED}; END",
    "CREATE TRIGGER IF NOT EXISTS report_handled AFTER INSERT ON messages"
    f" WHEN {_KNOWN} AND NEW.state = 'answered' BEGIN {_ANSWERED}; END",
    "CREATE TRIGGER IF NOT EXISTS report_injected AFTER UPDATE OF state ON messages"
    f" WHEN {_KNOWN} AND NEW.given > 0 AND OLD.given = 0 BEGIN {_INJECTED}; END",
    "CREATE TRIGGER IF NOT EXISTS report_answered AFTER UPDATE OF state ON messages"
    f" WHEN {_KNOWN} AND NEW.state = 'answered' AND OLD.state != 'answered' BEGIN {_ANSWERED}; END",
    "CREATE TRIGGER IF NOT EXISTS report_spend AFTER UPDATE ON turns WHEN NEW.ended IS NOT NULL BEGIN"
    f" DELETE FROM reports WHERE kind = '{FactKind.SPEND}' AND key = NEW.number;"
    f" {_ADD} ('{FactKind.SPEND}', NEW.number, NEW.place, ''); END",
    f"CREATE TRIGGER IF NOT EXISTS report_task AFTER INSERT ON turns BEGIN"
    f" {_ADD} ('{FactKind.TASK}', NEW.number, NEW.place, ''); END",
    "CREATE TRIGGER IF NOT EXISTS report_task_over AFTER UPDATE OF ended ON turns"
    " WHEN NEW.ended IS NOT NULL AND OLD.ended IS NULL BEGIN"
    f" DELETE FROM reports WHERE kind = '{FactKind.TASK}' AND key = NEW.number;"
    f" {_ADD} ('{FactKind.TASK}', NEW.number, NEW.place, ''); END",
    "CREATE TRIGGER IF NOT EXISTS report_task_aborted AFTER UPDATE OF outcome ON turns"
    " WHEN OLD.ended IS NOT NULL AND NEW.outcome IS NOT OLD.outcome BEGIN"
    f" DELETE FROM reports WHERE kind = '{FactKind.TASK}' AND key = NEW.number;"
    f" {_ADD} ('{FactKind.TASK}', NEW.number, NEW.place, ''); END",
    "CREATE TRIGGER IF NOT EXISTS report_question AFTER UPDATE ON questions"
    " WHEN NEW.msgids != '[]' OR NEW.answer IS NOT NULL BEGIN"
    f" DELETE FROM reports WHERE kind = '{FactKind.QUESTION}' AND key = NEW.number;"
    f" {_ADD} ('{FactKind.QUESTION}', NEW.number, NEW.place, ''); END",
    f"CREATE TRIGGER IF NOT EXISTS reports_bound AFTER INSERT ON reports WHEN NEW.number % 100 = 0 BEGIN"
    f" DELETE FROM reports WHERE number <= NEW.number - {MOST}; END",
)


@dataclass(frozen=True, slots=True)
class Report:
    """One thing to tell; several messages that have come equally far are told together."""

    numbers: tuple[int, ...]
    kind: FactKind
    keys: tuple[str, ...]
    place: str
    text: str


class Reports:
    """What waits to be told, in the order in which it happened."""

    def __init__(self, records: Records) -> None:
        self._records = records
        for statement in _STATEMENTS:
            records.execute(statement)

    def first(self) -> Report | None:
        """What comes next."""
        rows = self._records.execute(
            "SELECT number, kind, key, place, text FROM reports ORDER BY number LIMIT ?", (_AT_ONCE,)
        ).fetchall()
        if not rows:
            return None
        _, kind, _, place, text = rows[0]
        numbers: list[int] = []
        keys: list[str] = []
        for number, *what in rows:
            if what != [kind, what[1], place, text] or (numbers and kind != FactKind.RECEIPT):
                break
            numbers.append(number)
            keys.append(str(what[1]))
        return Report(tuple(numbers), FactKind(kind), tuple(keys), place, text)

    def later(self, report: Report, keys: Iterable[str]) -> None:
        """Of a report these are to be told again, behind what else waits; the rest of it is done."""
        with self._records.change():
            self.done(report)
            for key in keys:
                self._records.execute(f"{_ADD} (?, ?, ?, ?)", (report.kind.value, key, report.place, report.text))

    def alert(self, event: str, place: str, text: str) -> None:
        """People are being called."""
        self._records.execute(f"{_ADD} (?, ?, ?, ?)", (FactKind.ALERT.value, event, place, text))

    def done(self, report: Report) -> None:
        """It was told, or never will be."""
        self._records.execute(
            "DELETE FROM reports WHERE number BETWEEN ? AND ?", (report.numbers[0], report.numbers[-1])
        )

    def clear(self) -> None:
        """Nobody here wants to know."""
        self._records.execute("DELETE FROM reports")
