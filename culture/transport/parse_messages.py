"""Lines and batches of the server → messages as their readers want them."""

import hashlib
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count

from culture.protocol.caps import MULTILINE
from culture.protocol.mentions import calls_all, mentions
from culture.protocol.message import Message as Line
from culture.protocol.names import fold, name_part
from culture.protocol.vocabulary import Cap, Tag, UserClass
from culture.transport.batches import Item, ReceivedBatch, ReceivedBatches, text_of
from culture.transport.registration import names_of
from culture.transport.types import Message
from culture.transport.view import NetworkView

LOCAL = "local."
"""What ids begin with that were made here."""

_SPOKEN = ("PRIVMSG", "NOTICE")
_WIRE = ("batch", "label")
"""Tags that mean something on the wire alone."""
_CTCP = "\x01"
_ACTION = "\x01ACTION "


class MessageParser:
    """Reads what comes on one connection."""

    def __init__(
        self, view: NetworkView, enabled: Collection[str], agents: Collection[str], people: Collection[str] = ()
    ) -> None:
        self._view = view
        self._is_ours = Cap.MENTIONS.value in enabled
        self._tells_accounts = "account-tag" in enabled
        self._agents = agents
        self._people = people
        self._run = secrets.token_hex(4)
        self._numbers = count(1)

    def messages(self, items: Iterable[Item]) -> Iterator[Message]:
        """What was said in the past, as a batch of history tells it."""
        for item in items:
            if isinstance(item, ReceivedBatch) and item.kind != MULTILINE:
                yield from self.messages(item.items)
            elif (message := self.message(item, missed=True)) is not None:
                yield message

    def message(self, item: Item, missed: bool = False) -> Message | None:
        """Something that was said by somebody; None for everything else."""
        if isinstance(item, Line):
            return self._message(item, item.verb, item.params[-1], missed) if _is_spoken(item) else None
        first = next(item.lines(), None)
        if item.kind != MULTILINE or first is None or not _is_spoken(first):
            return None
        source = item.source or first.source
        line = Line(first.verb, first.params, source, {**first.tags, **item.tags})
        return self._message(line, first.verb, text_of(item), missed)

    def said_by_us(self, verb: str, target: str, lines: Sequence[Line]) -> Message:
        """What we have said, where the server does not tell us."""
        items = [item for batches in [ReceivedBatches()] for line in lines for item in batches.take(line)]
        text = "".join(text_of(item) if isinstance(item, ReceivedBatch) else item.params[-1] for item in items)
        source, tags = f"{self._view.nick}!", dict(lines[0].tags)
        said = self._message(Line(verb, (target, text), source, tags), verb, text, missed=False)
        assert said is not None  # of CTCP nothing is left by then
        return said

    def _message(self, line: Line, verb: str, text: str, missed: bool) -> Message | None:
        if text.startswith(_CTCP):
            if verb != "PRIVMSG" or not text.startswith(_ACTION):
                return None
            text = f"* {text[len(_ACTION) :].rstrip(_CTCP)}"
        sender, _, _ = line.source.partition("!")
        target = self._view.features.channel_of(line.params[0])
        private = not self._view.features.is_channel(target)
        account = line.tags.get("account")
        own = self._view.is_self(sender) or (account is not None and account == self._view.account)
        # Whose process it is is no proof that a person said it: an agent's processes are its owner's too. A server of
        # ours says which logins were proven; what it does not say is not proven.
        is_proven = Tag.LOGIN.value in line.tags if self._is_ours else Tag.KEYBOARD.value not in line.tags
        time = time_of(line.tags)
        return Message(
            channel=target if not private or own else sender,
            sender=sender,
            text=text,
            timestamp=time or datetime.now(UTC),
            msgid=line.tags.get("msgid") or self._local_id(line, text, time),
            account=account if is_proven else None,
            kind=self.kind(sender, line.tags),
            private=private,
            notice=verb == "NOTICE",
            mentions=() if private or verb == "NOTICE" else self._mentions(target, text, line.tags, missed),
            calls_all=not private and verb != "NOTICE" and calls_all(text),
            tags={key: value for key, value in line.tags.items() if key not in _WIRE},
            missed=missed,
            own=own,
        )

    def is_configured_agent(self, nick: str) -> bool:
        """Whether this is the nick of a configured agent: on a server without classes that is all we know."""
        wanted = self._view.fold(nick)
        return any(wanted == self._view.fold(name) for agent in self._agents for name in names_of(agent))

    def kind(self, sender: str, tags: Mapping[str, str]) -> UserClass:
        """The class of whoever sent a line, as the server says, or where it knows no classes our configuration."""
        try:
            return UserClass(tags[Tag.CLASS.value]) if self._is_ours else self._kind_by_name(sender, tags)
        except (KeyError, ValueError):
            return UserClass.UNKNOWN

    def _kind_by_name(self, sender: str, tags: Mapping[str, str]) -> UserClass:
        """A class tag proves nothing on a server that is not ours: its users may be able to send one."""
        if self.is_configured_agent(sender):
            return UserClass.AGENT
        user = self._view.user(sender)
        if "bot" in tags or (user is not None and user.kind is UserClass.BOT):
            return UserClass.BOT
        # Where the server tells accounts, a nick without one may be anybody's.
        name = tags.get("account") if self._tells_accounts else sender
        fold = self._view.fold
        listed = name is not None and any(fold(name) == fold(each) for each in self._people)
        return UserClass.HUMAN if listed else UserClass.UNKNOWN

    def _mentions(self, channel: str, text: str, tags: Mapping[str, str], missed: bool) -> tuple[str, ...]:
        told = tags.get(Tag.MENTIONS.value)
        if not self._is_ours or (missed and told is None):
            return self._found(channel, text)
        called = tuple(nick for nick in (told or "").split(",") if nick)
        us = self._view.nick
        if us in called or fold(name_part(us)) not in fold(text):
            return called
        # The server where it was said may not have known then that we are here.
        return (*called, us) if us in self._found(channel, text) else called

    def _found(self, channel: str, text: str) -> tuple[str, ...]:
        nicks = {member.nick: None for member in self._view.members(channel)}
        return mentions(text, [*nicks, *([] if self._view.nick in nicks else [self._view.nick])])

    def _local_id(self, line: Line, text: str, time: datetime | None) -> str:
        """The same message from the history has the same id, where the server tells times."""
        if time is None:
            return f"{LOCAL}{self._run}.{next(self._numbers)}"
        said = "\0".join((time.isoformat(), line.source.partition("!")[0], line.params[0], text))
        return LOCAL + hashlib.sha256(said.encode(errors="replace")).hexdigest()[:24]


def _is_spoken(line: Line) -> bool:
    """Servers speak too, without a user and host; that is for nobody."""
    return line.verb in _SPOKEN and len(line.params) > 1 and "!" in line.source


def time_of(tags: Mapping[str, str]) -> datetime | None:
    """When something happened, where the server says so."""
    try:
        return datetime.fromisoformat(tags["time"]).astimezone(UTC)
    except (KeyError, ValueError, OverflowError):
        return None
