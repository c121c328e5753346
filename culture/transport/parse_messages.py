"""Parses the server's lines and batches into ``Message`` objects."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count

from culture.protocol.caps import MULTILINE
from culture.protocol.mentions import calls_all, mentions
from culture.protocol.message import Message as Line
from culture.protocol.names import fold, name_part
from culture.protocol.vocabulary import Cap, Tag, UserClass
from culture.runtime import REAL, Runtime
from culture.transport.batches import Item, ReceivedBatch, ReceivedBatches, text_of
from culture.transport.registration import possible_nicks
from culture.transport.types import Message
from culture.transport.view import NetworkView

LOCAL = "local."
"""Prefix of message ids made by this client."""

_TEXT_VERBS = ("PRIVMSG", "NOTICE")
_TRANSPORT_TAGS = ("batch", "label")
"""Tags of the line protocol, which say nothing about the message."""
_CTCP = "\x01"
_ACTION = "\x01ACTION "


class MessageParser:
    """Turns the lines and batches of one connection into ``Message`` objects."""

    def __init__(
        self,
        view: NetworkView,
        enabled: Collection[str],
        agents: Collection[str],
        people: Collection[str] = (),
        *,
        runtime: Runtime = REAL,
    ) -> None:
        self._view = view
        self._is_ours = Cap.MENTIONS.value in enabled
        self._tells_accounts = "account-tag" in enabled
        self._agents = agents
        self._people = people
        self._runtime = runtime
        self._run = runtime.token_hex(4)
        self._numbers = count(1)

    def messages(self, items: Iterable[Item]) -> Iterator[Message]:
        """Iterate over the messages in ``items``, the lines and batches of a history answer."""
        for item in items:
            if isinstance(item, ReceivedBatch) and item.kind != MULTILINE:
                yield from self.messages(item.items)
            elif (message := self.message(item, missed=True)) is not None:
                yield message

    def message(self, item: Item, missed: bool = False) -> Message | None:
        """Return the message in a line or multiline batch; None if ``item`` is no text of a user.

        ``missed``: the message comes from the history.
        """
        if isinstance(item, Line):
            return self._message(item, item.verb, item.params[-1], missed) if _is_user_text(item) else None
        first = next(item.lines(), None)
        if item.kind != MULTILINE or first is None or not _is_user_text(first):
            return None
        source = item.source or first.source
        line = Line(first.verb, first.params, source, {**first.tags, **item.tags})
        return self._message(line, first.verb, text_of(item), missed)

    def own_message(self, verb: str, target: str, lines: Sequence[Line]) -> Message:
        """Return the message that we sent as ``lines``, for servers that do not echo it.

        ``verb``: PRIVMSG or NOTICE.
        """
        items = [item for batches in [ReceivedBatches()] for line in lines for item in batches.take(line)]
        text = "".join(text_of(item) if isinstance(item, ReceivedBatch) else item.params[-1] for item in items)
        source, tags = f"{self._view.nick}!", dict(lines[0].tags)
        message = self._message(Line(verb, (target, text), source, tags), verb, text, missed=False)
        assert message is not None  # outgoing text has no CTCP marker
        return message

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
        # A login by local uid is no proof of a person: an agent's processes run under its owner's uid too. A server
        # of ours tags the logins that were proven; without the tag none was.
        is_proven = Tag.LOGIN.value in line.tags if self._is_ours else Tag.KEYBOARD.value not in line.tags
        time = time_of(line.tags)
        return Message(
            channel=target if not private or own else sender,
            sender=sender,
            text=text,
            timestamp=time or self._runtime.utc(),
            msgid=line.tags.get("msgid") or self._local_id(line, text, time),
            account=account if is_proven else None,
            kind=self.kind(sender, line.tags),
            private=private,
            notice=verb == "NOTICE",
            mentions=() if private or verb == "NOTICE" else self._mentions(target, text, line.tags, missed),
            calls_all=not private and verb != "NOTICE" and calls_all(text),
            tags={key: value for key, value in line.tags.items() if key not in _TRANSPORT_TAGS},
            missed=missed,
            own=own,
        )

    def is_configured_agent(self, nick: str) -> bool:
        """Whether a nick, or an alternative of it, is that of an agent in the configuration.

        It is used on servers that do not tell the class of their users.
        """
        folded = self._view.fold(nick)
        return any(folded == self._view.fold(name) for agent in self._agents for name in possible_nicks(agent))

    def kind(self, sender: str, tags: Mapping[str, str]) -> UserClass:
        """Return a sender's class: from the tag of a server of ours, else by the configured nicks."""
        try:
            return UserClass(tags[Tag.CLASS.value]) if self._is_ours else self._kind_by_name(sender, tags)
        except (KeyError, ValueError):
            return UserClass.UNKNOWN

    def _kind_by_name(self, sender: str, tags: Mapping[str, str]) -> UserClass:
        """Return a sender's class by the nicks of agents and people in the configuration.

        A sender that is no configured agent and has the bot tag or the bot mode is a bot. A class tag is not trusted
        here: on servers that are not ours anybody may send one.
        """
        if self.is_configured_agent(sender):
            return UserClass.AGENT
        user = self._view.user(sender)
        if "bot" in tags or (user is not None and user.kind is UserClass.BOT):
            return UserClass.BOT

        # If the server tells accounts, a nick without one proves nothing.
        name = tags.get("account") if self._tells_accounts else sender
        fold = self._view.fold
        listed = name is not None and any(fold(name) == fold(each) for each in self._people)
        return UserClass.HUMAN if listed else UserClass.UNKNOWN

    def _mentions(self, channel: str, text: str, tags: Mapping[str, str], missed: bool) -> tuple[str, ...]:
        tag = tags.get(Tag.MENTIONS.value)
        if not self._is_ours or (missed and tag is None):
            return self._search_mentions(channel, text)
        tagged = tuple(nick for nick in (tag or "").split(",") if nick)
        own_nick = self._view.nick
        if own_nick in tagged or fold(name_part(own_nick)) not in fold(text):
            return tagged
        # The sender's server may not have known at that time that we are here.
        return (*tagged, own_nick) if own_nick in self._search_mentions(channel, text) else tagged

    def _search_mentions(self, channel: str, text: str) -> tuple[str, ...]:
        nicks = {member.nick: None for member in self._view.members(channel)}
        return mentions(text, [*nicks, *([] if self._view.nick in nicks else [self._view.nick])])

    def _local_id(self, line: Line, text: str, time: datetime | None) -> str:
        """Return an id, beginning with ``local.``, for a message to which the server gave none.

        If the server sent a time, a later copy of the message from the history gets the same id.
        """
        if time is None:
            return f"{LOCAL}{self._run}.{next(self._numbers)}"
        content = "\0".join((time.isoformat(), line.source.partition("!")[0], line.params[0], text))
        return LOCAL + hashlib.sha256(content.encode(errors="replace")).hexdigest()[:24]


def _is_user_text(line: Line) -> bool:
    """Whether a line is a PRIVMSG or NOTICE of a user, and not of a server."""
    return line.verb in _TEXT_VERBS and len(line.params) > 1 and "!" in line.source


def time_of(tags: Mapping[str, str]) -> datetime | None:
    """Return the time in a line's tags, in UTC; None if there is no valid one."""
    try:
        return datetime.fromisoformat(tags["time"]).astimezone(UTC)
    except (KeyError, ValueError, OverflowError):
        return None
