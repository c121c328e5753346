"""Entries to keep, by what matters about them."""

import json
from typing import Any

from culture.skills.history.entry import Entry, conversation, party
from culture.skills.history.store import Kept, Store, View

START = 1_750_000_000_000_000
SECOND = 1_000_000
PLACE = "#general"


def entry(seq: int, text: str = "hello", *, at: int | None = None, place: str = PLACE, **more: Any) -> Entry:
    """A message; by its number it is so many seconds after the start."""
    base = Entry(
        place=place,
        origin="spark",
        epoch="e1",
        seq=seq,
        at=START + seq * SECOND if at is None else at,
        verb="PRIVMSG",
        source="ada!a@here",
        account="ada",
        kind="",
        text=text,
        target=place,
    )
    return base._replace(**more)


def event(seq: int, verb: str = "JOIN", **more: Any) -> Entry:
    return entry(seq, "", verb=verb, **more)


def redaction(seq: int, msgid: str, **more: Any) -> Entry:
    return entry(seq, "", verb="REDACT", data=json.dumps({"msgid": msgid}), **more)


def private(seq: int, text: str, sender: tuple[str | None, str], target: tuple[str | None, str]) -> Entry:
    """A message between two of ``(account, nick)``."""
    place = conversation(party(*sender), party(*target))
    return entry(seq, text, place=place, source=f"{sender[1]}!u@h", account=sender[0], target=target[1])


def ask(
    store: Store,
    view: View | str = PLACE,
    *,
    after: int | None = None,
    before: int | None = None,
    limit: int = 100,
    newest: bool = False,
) -> list[Kept]:
    view = View(view) if isinstance(view, str) else view
    return store.page(view, after, before, limit, newest)


def numbers(found: list[Kept]) -> list[int]:
    return [each.entry.seq for each in found]


def texts(found: list[Kept]) -> list[str]:
    return [each.entry.text for each in found]
