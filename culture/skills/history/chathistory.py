"""CHATHISTORY: what was said in a channel or in private, for clients that page through it (IRCv3 draft/chathistory)."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from culture.protocol.message import Message
from culture.protocol.names import is_channel, valid_nick
from culture.server.commands import Later, command
from culture.server.context import Context
from culture.server.core.batches import batched
from culture.server.core.encode import wire
from culture.server.core.ids import MICROSECONDS
from culture.server.core.render import iso_time
from culture.server.errors import Failed
from culture.skills.history.access import Access, Readable
from culture.skills.history.archive import Archive
from culture.skills.history.playback import played
from culture.skills.history.references import MessageId, Moment, Reference, find, is_known_type, parse
from culture.skills.history.selection import REFERENCES, select
from culture.skills.history.store import Kept, Store, Talk, TooSlow, Unavailable

VERB = "CHATHISTORY"
CAP = "draft/chathistory"
EVENTS_CAP = "draft/event-playback"
TARGETS = "TARGETS"
TARGETS_BATCH = "draft/chathistory-targets"
_FAILED = "Messages could not be retrieved"


class Question(NamedTuple):
    """What is asked: of which channel or nick (none for TARGETS), from where, and how much of it."""

    action: str
    target: str
    references: tuple[Reference, ...]
    limit: int


class ChatHistory:
    """Answers CHATHISTORY."""

    def __init__(self, archive: Archive, access: Access, rows: int) -> None:
        self._archive = archive
        self._access = access
        self._rows = rows

    @command(VERB)
    def chathistory(self, ctx: Context, message: Message) -> Later:
        """``CHATHISTORY LATEST|BEFORE|AFTER|AROUND target reference limit``: what was said, for clients that page.

        BETWEEN takes two references. A reference is msgid=id or timestamp=time; LATEST also takes *. TARGETS with two
        times and a limit tells where something was said between these.
        """
        question = self._question(message)
        if question.action == TARGETS:
            return Later(self._talks(ctx, question), partial(_show_talks, ctx))
        name, readable = self._readable(ctx, question)
        return Later(self._find(question, readable), partial(_show, ctx, name))

    def _question(self, message: Message) -> Question:
        given, *words = message.params or ("*",)
        action = given.upper()
        if action not in (*REFERENCES, TARGETS):
            raise _invalid(given, text=f"{VERB} knows {', '.join(REFERENCES)} and {TARGETS}")
        wanted = 3 if action == TARGETS else REFERENCES[action] + 2
        if len(words) != wanted:
            raise _invalid(action, text="Too many parameters" if len(words) > wanted else "Insufficient parameters")
        target = "" if action == TARGETS else words.pop(0)
        *references, limit = words
        if action == "LATEST" and references == ["*"]:
            references = []
        return Question(
            action,
            target,
            tuple(_reference(action, target, each) for each in references),
            self._limit(action, limit),
        )

    def _limit(self, action: str, word: str) -> int:
        if not (word.isascii() and word.isdigit() and word.strip("0")):
            raise _invalid(action, word, text="The limit is a number from 1 on")
        return min(int(word[:9]), self._rows)

    def _readable(self, ctx: Context, question: Question) -> tuple[str, Readable]:
        """The target's name as it is shown, and what of it the asker may read."""
        enabled, target = ctx.session.caps.enabled, question.target
        events = EVENTS_CAP in enabled and "batch" in enabled
        if is_channel(target):
            channel = ctx.network.channel(target)
            # Whether there is such a channel is not for those to know who are not in it.
            if channel is not None and ctx.user in channel.members:
                return channel.name, Readable((self._access.member(channel, ctx.user, events),))
        elif valid_nick(target, ctx.config.limits.nick_length):
            return target, self._access.private(ctx, target, events)
        raise Failed(VERB, "INVALID_TARGET", question.action, target, text=_FAILED)

    async def _find(self, question: Question, readable: Readable) -> list[Kept]:
        try:
            found = await self._archive.read(partial(_ask, question, readable))
        except (Unavailable, TooSlow) as error:
            raise Failed(VERB, "MESSAGE_ERROR", question.action, question.target, text=_FAILED) from error
        return [each for each in found if readable.includes(each.entry) and self._access.includes(each.entry)]

    async def _talks(self, ctx: Context, question: Question) -> list[Talk]:
        user = ctx.user
        channels = tuple((channel.name, self._access.member(channel, user)) for channel in user.channels)
        reader = self._access.reader(user)
        begin, end = (_moment(reference) for reference in question.references)
        low, high = sorted((begin, end))

        def ask(store: Store) -> list[Talk]:
            talks = store.talks(reader.party, reader.since, (), low.end - 1, high.at)
            for name, view in channels:
                for _, last in store.page(view, None, None, 1, newest=True):
                    talks += [Talk(name, last.at)] if self._access.includes(last) else []
            return sorted((talk for talk in talks if low.end <= talk.at < high.at), key=lambda talk: talk.at)

        try:
            talks = await self._archive.search(ask)
        except (Unavailable, TooSlow) as error:
            raise Failed(VERB, "MESSAGE_ERROR", question.action, text=_FAILED) from error
        shown = talks[: question.limit] if begin <= end else talks[-question.limit :]
        return [talk._replace(name=self._access.name_of(ctx, reader, talk)) for talk in shown]


def _invalid(*context: str, text: str) -> Failed:
    return Failed(VERB, "INVALID_PARAMS", *context, text=text)


def _reference(action: str, target: str, word: str) -> Reference:
    if not is_known_type(word):
        text = "References are msgid=id and timestamp=time"
        raise Failed(VERB, "INVALID_MSGREFTYPE", action, *([target] if target else []), word, text=text)
    reference = parse(word)
    if reference is None or (action == TARGETS and not isinstance(reference, Moment)):
        raise _invalid(action, word, text="A time looks like timestamp=2026-03-19T10:00:00.000Z")
    return reference


def _moment(reference: Reference) -> Moment:
    assert isinstance(reference, Moment)
    return reference


def _ask(question: Question, readable: Readable, store: Store) -> list[Kept]:
    view = readable.view(store)
    spans = []
    for reference in question.references:
        span = find(store, view, reference)
        if span is None:
            text = "There is no such message here, or it is no longer kept"
            word = f"msgid={reference.msgid}" if isinstance(reference, MessageId) else ""
            raise Failed(VERB, "MESSAGE_ERROR", question.action, question.target, word, text=text)
        spans.append(span)
    return select(store, view, question.action, spans, question.limit)


def _show(ctx: Context, name: str, found: Sequence[Kept]) -> None:
    ctx.session.pull(played(ctx.session, ctx.router.name, name, found))


def _show_talks(ctx: Context, talks: Sequence[Talk]) -> None:
    rows, server = _rows(talks, ctx.router.name), ctx.router.name
    knows_batches = "batch" in ctx.session.caps.enabled
    ctx.session.pull(batched(rows, server, TARGETS_BATCH) if knows_batches else map(wire, rows))


def _rows(talks: Sequence[Talk], server: str) -> Iterator[Message]:
    for talk in talks:
        yield Message(VERB, (TARGETS, talk.name, iso_time(talk.at / MICROSECONDS)), server)
