"""HISTORY: what was said in a channel, for every client."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from culture.protocol.message import Message
from culture.protocol.names import is_channel
from culture.protocol.numerics import Numeric
from culture.protocol.split import cut_line, room
from culture.protocol.vocabulary import ExtensionVerb, Tag
from culture.server.commands import Later, command
from culture.server.context import Context
from culture.server.core.visibility import no_such_channel
from culture.server.errors import Failed, Refused
from culture.skills.history.access import Access
from culture.skills.history.archive import Archive
from culture.skills.history.missed import ACTION as MISSED
from culture.skills.history.missed import Missing
from culture.skills.history.readable import readable, timestamp
from culture.skills.history.semantic import Semantic
from culture.skills.history.store import Kept, Store, TooSlow, Unavailable, View
from culture.skills.history.words import query

VERB = ExtensionVerb.HISTORY.value
_RECENT = 50
_BY_MEANING = 10
_RARER, _AGAIN = "ask with a rarer word", "ask again in a moment"
_SUBCOMMANDS = "MISSED, RECENT, SEARCH, SEMANTIC, SINCE"

Ask = Callable[[View, Store], list[Kept]]


class Asked(NamedTuple):
    """What is asked; ``slow`` has what to do when it takes too long, for what may have to look at much."""

    ask: Ask
    slow: str = ""


class Question(NamedTuple):
    """What is asked, of which channel, and whether in the short form that people type."""

    channel: str
    is_short: bool
    asked: Asked


class HistoryVerb:
    """Answers HISTORY."""

    def __init__(self, archive: Archive, access: Access, semantic: Semantic, rows: int, seconds: float) -> None:
        self._archive = archive
        self._access = access
        self._semantic = semantic
        self._rows = rows
        self._seconds = seconds
        self._missing = Missing(archive, access, rows)

    @command(VERB, params=1)
    def history(self, ctx: Context, message: Message) -> Later:
        """``HISTORY RECENT #channel [how many]``: the last messages of a channel.

        HISTORY SEARCH #channel :words finds messages that have all the words, HISTORY SEMANTIC #channel :question those
        nearest in meaning, and HISTORY SINCE #channel msgid gives what came after a message.

        HISTORY RECENT [how many] is for people: the channel that you last spoke in or joined. HISTORY MISSED is for
        programs: what came for you, wherever, since msgid=id or timestamp=time.
        """
        if message.params[0].upper() == MISSED:
            return self._missing.ask(ctx, message.params[1:])
        question = self._question(ctx, message)
        view = self._access.channel(ctx, question.channel)
        return Later(self._read(question, view), partial(self._answer, ctx, question, view))

    def _question(self, ctx: Context, message: Message) -> Question:
        action, *words = message.params
        is_short = not (words and is_channel(words[0]))
        if not is_short:
            channel, *words = words
        elif ctx.session.place is not None:
            channel = ctx.session.place
        else:
            raise Failed(VERB, "NEED_MORE_PARAMS", text=f"Say which channel: HISTORY {action.upper()} #channel …")
        return Question(channel, is_short, self._asked(action.upper(), words))

    def _asked(self, action: str, words: list[str]) -> Asked:
        match action:
            case "RECENT":
                limit = self._number(words[0]) if words else _RECENT
                return Asked(lambda view, store: store.page(view, None, None, limit, newest=True))
            case "SEARCH":
                asked = query(_text(action, words))
                return Asked(lambda view, store: store.search(view, asked, self._rows, self._seconds), _RARER)
            case "SEMANTIC":
                text = _text(action, words)
                if (why := self._semantic.why_not) is not None:
                    raise Failed(VERB, "SEMANTIC_UNAVAILABLE", text=why)
                return Asked(lambda view, store: self._semantic.search(view, text, _BY_MEANING, self._seconds), _AGAIN)
            case "SINCE":
                if not words:
                    raise Refused(Numeric.ERR_NEEDMOREPARAMS, VERB)
                limit = self._number(words[1]) if words[1:] else self._rows
                return Asked(partial(_since, words[0], limit))
        raise Failed(VERB, "UNKNOWN_COMMAND", action, text=f"HISTORY knows {_SUBCOMMANDS}")

    def _number(self, word: str) -> int:
        if not (word.isascii() and word.isdigit() and word.strip("0")):
            raise Failed(VERB, "INVALID_PARAMS", word, text="Say how many messages as a number from 1 on")
        return min(int(word[:9]), self._rows)

    async def _read(self, question: Question, view: View) -> list[Kept] | Failed:
        asked, archive = question.asked, self._archive
        try:
            found = await (archive.search if asked.slow else archive.read)(partial(asked.ask, view))
            return [each for each in found if self._access.includes(each.entry)]
        except TooSlow:
            text = f"This took longer than {self._seconds:g} s: {asked.slow or _AGAIN}"
            return Failed(VERB, "TOO_SLOW", question.channel, text=text)
        except Unavailable as error:
            return Failed(VERB, "UNAVAILABLE", question.channel, text=f"The history cannot be read now: {error}")
        except Failed as failed:
            return failed

    def _answer(self, ctx: Context, question: Question, view: View, found: list[Kept] | Failed) -> None:
        if isinstance(found, Failed):
            raise found
        channel = ctx.network.channel(question.channel)
        if channel is None and not found:
            # Whether there was one that nobody could join is not told.
            text = no_such_channel(ctx.network, ctx.user, question.channel)
            raise Refused(Numeric.ERR_NOSUCHCHANNEL, question.channel, text=text)
        name = channel.name if channel is not None else question.channel
        rows = readable(ctx, name, found) if question.is_short else _rows(ctx, name, found)
        ctx.session.pull(rows)


def _text(action: str, words: list[str]) -> str:
    text = " ".join(words)
    if not text.strip():
        raise Failed(VERB, "NEED_MORE_PARAMS", text=f"Say what to look for: HISTORY {action} #channel :words")
    return text


def _since(msgid: str, limit: int, view: View, store: Store) -> list[Kept]:
    position = store.locate(view, msgid)
    if position is None:
        raise Failed(VERB, "UNKNOWN_MSGID", msgid, text="There is no such message here, or it is no longer kept")
    return store.page(view, position, None, limit, newest=False)


def _rows(ctx: Context, channel: str, found: list[Kept]) -> Iterator[bytes]:
    """The documented form, to the letter; with the id and the sender's class for who knows tags."""
    enabled, server = ctx.session.caps.enabled, ctx.router.name
    for _, entry in found:
        words = (channel, entry.nick, timestamp(entry.at))
        tags = {"msgid": entry.msgid, Tag.CLASS.value: entry.kind} if "message-tags" in enabled else {}
        for line in entry.text.split("\n"):
            for piece in cut_line(line, room(server, VERB, " ".join(words))):
                yield _line(Message(VERB, (*words, piece), server, tags))
                tags = {}
    yield _line(Message(ExtensionVerb.HISTORYEND.value, (channel, "End of results"), server))


def _line(message: Message) -> bytes:
    """The line, whose last parameter always has its colon."""
    *words, last = message.params
    head = str(message._replace(params=tuple(words)))
    return f"{head} :{last}\r\n".encode()
