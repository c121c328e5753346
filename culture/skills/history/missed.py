"""HISTORY MISSED: what came for somebody while they were gone, also what came late with an older time."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from culture.protocol.message import Message
from culture.protocol.vocabulary import BatchType, ExtensionVerb
from culture.server.commands import Later
from culture.server.context import Context
from culture.server.core.encode import wire
from culture.server.errors import Failed
from culture.skills.history.access import Access, Reader
from culture.skills.history.archive import Archive
from culture.skills.history.entry import Entry
from culture.skills.history.playback import enclosed, lines
from culture.skills.history.references import Moment, Reference, is_known_type, parse
from culture.skills.history.store import LATEST, Arrival, Kept, Store, TooSlow, Unavailable, View

VERB = ExtensionVerb.HISTORY.value
ACTION = "MISSED"


class Answer(NamedTuple):
    """What was missed, or the first part of it."""

    found: Sequence[Kept]
    has_more: bool


class Missing:
    """Finds it: in the channels that the asker is in, and what was said with them in private."""

    def __init__(self, archive: Archive, access: Access, rows: int) -> None:
        self._archive = archive
        self._access = access
        self._rows = rows

    def ask(self, ctx: Context, words: Sequence[str]) -> Later:
        """What came since the first of these references that is known."""
        references = _references(words)
        channels = [self._access.member(channel, ctx.user) for channel in ctx.user.channels]
        reader = self._access.reader(ctx.user)
        return Later(self._find(references, channels, reader), partial(_show, ctx))

    async def _find(self, references: Sequence[Reference], channels: Sequence[View], reader: Reader) -> Answer:
        def ask(store: Store) -> Answer:
            talks = store.talks(reader.party, reader.since, (), -1, LATEST + 1)
            views = [*channels, *(View(talk.place, since=reader.since) for talk in talks)]
            return self._read(store, views, beginning(store, views, references), reader)

        try:
            return await self._archive.read_all(ask)
        except (Unavailable, TooSlow) as error:
            text = f"The history cannot be read now, ask again in a moment: {error}"
            raise Failed(VERB, "UNAVAILABLE", ACTION, text=text) from error

    def _read(self, store: Store, views: Sequence[View], after: Arrival, reader: Reader) -> Answer:
        found: list[Kept] = []
        wanted = self._rows + 1
        while len(found) < wanted:
            some = store.missed(views, after, wanted)
            found += [each.kept for each in some if self._may_read(reader, each.kept.entry)]
            if len(some) < wanted:
                break
            after = some[-1].arrival
        return Answer(found[: self._rows], len(found) > self._rows)

    def _may_read(self, reader: Reader, entry: Entry) -> bool:
        return reader.includes(entry) if entry.is_private else self._access.includes(entry)


def _references(words: Sequence[str]) -> list[Reference]:
    if not words:
        text = f"Say since when: {VERB} {ACTION} msgid=id … or timestamp=time"
        raise Failed(VERB, "NEED_MORE_PARAMS", ACTION, text=text)
    return [_reference(word) for word in words]


def _reference(word: str) -> Reference:
    reference = parse(word)
    if reference is None:
        text = "References are msgid=id and timestamp=time, a time like 2026-03-19T10:00:00.000Z"
        code = "INVALID_PARAMS" if is_known_type(word) else "INVALID_MSGREFTYPE"
        raise Failed(VERB, code, ACTION, word, text=text)
    return reference


def beginning(store: Store, views: Sequence[View], references: Sequence[Reference]) -> Arrival:
    """When the first came that is known.

    One that came late may have come before, and was lost in a crash or by a restore: then the earliest counts, up to
    the first that came in time.
    """
    allowed = {view.place: view for view in views}
    found: list[Arrival] = []
    for reference in references:
        if isinstance(reference, Moment):
            found.append(store.since(reference.at))
            break
        came = [
            arrival
            for place, arrival in store.arrivals(reference.msgid).items()
            if place in allowed and store.locate(allowed[place], reference.msgid) is not None
        ]
        found += came
        if came and not min(came).number:
            break
    if not found:
        raise Failed(VERB, "UNKNOWN_MSGID", ACTION, text="None of these messages is known here, or is still kept")
    return min(found)


def _show(ctx: Context, answer: Answer) -> None:
    session, server = ctx.session, ctx.router.name
    rows = _rows(ctx, answer)
    ctx.session.pull(enclosed(rows, server, BatchType.MISSED.value) if "batch" in session.caps.enabled else rows)


def _rows(ctx: Context, answer: Answer) -> Iterator[bytes]:
    for _, entry in answer.found:
        yield from lines(ctx.session, entry)
    where = (f"msgid={answer.found[-1].entry.msgid}", "More") if answer.has_more else ("End of results",)
    yield wire(Message(ExtensionVerb.HISTORYEND.value, ("*", *where), ctx.router.name))
