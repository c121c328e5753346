"""Our own bot mode, metadata and away message, published again on every connection."""

from culture.protocol.message import Message as Line
from culture.protocol.vocabulary import ChannelKey, UserKey
from culture.transport.message_sender import check_target
from culture.transport.requests import lines_of, refusal
from culture.transport.session import IrcSession
from culture.transport.types import NotSent

_CAPS = ("draft/metadata-3", "draft/metadata-2", "draft/metadata")
_KEYS = tuple(dict.fromkeys(key.value for key in (*UserKey, *ChannelKey)))
_MAX_VALUES = 64


class ClientProfile:
    """Our own bot mode, metadata and away message; they are published again on each connection."""

    def __init__(self, bot: bool) -> None:
        self._bot = bot
        self._values: dict[str, str] = {}
        self._away = ""

    async def publish_all(self, session: IrcSession) -> None:
        """Send bot mode, metadata and away message on a new connection, before joining channels."""
        bot = session.view.features.tokens.get("BOT")
        if bot and self._bot:
            await session.ask(Line("MODE", (session.view.nick, f"+{bot}")))
        if has_metadata(session):
            session.watchers.append(lambda line: _sync(session, line))
            await session.ask(Line("METADATA", ("*", "SUB", *_KEYS)))
            for key in list(self._values):
                # The value may have changed or gone while those before it were sent.
                if (value := self._values.get(key)) is not None:
                    await session.ask(Line("METADATA", ("*", "SET", key, value)))
        if self._away:
            await session.ask(Line("AWAY", (self._away,)))

    async def publish(self, session: IrcSession | None, key: str, value: str | None) -> bool:
        """Store one of our own metadata values and send it, or remove it (None).

        Return whether the value was sent: False if the server does not support metadata, or without a session; then
        it is sent on the next connection.
        """
        if value is None:
            self._values.pop(key, None)
        elif key in self._values or len(self._values) < _MAX_VALUES:
            self._values[key] = value
        return session is not None and await set_metadata(session, "*", key, value)

    async def set_away(self, session: IrcSession | None, text: str) -> None:
        """Set our away message, or clear it with an empty text; it is set again on each connection."""
        self._away = " ".join(text.split())
        if session is not None:
            await session.command(Line("AWAY", (self._away,) if self._away else ()))


def has_metadata(session: IrcSession) -> bool:
    """Whether a METADATA capability is enabled in this session."""
    return any(cap in session.enabled for cap in _CAPS)


async def set_metadata(session: IrcSession, target: str, key: str, value: str | None) -> bool:
    """Set the metadata ``key`` of a target, or remove it if ``value`` is None.

    ``target``: a channel, a nick or ``*`` for ourselves. Returns False if the server does not support METADATA;
    ``NotSent`` is raised if it refuses.
    """
    check_target(target)
    if not has_metadata(session):
        return False
    words = (target, "SET", key) if value is None else (target, "SET", key, " ".join(value.split("\n")))
    await session.command(Line("METADATA", words))
    return True


async def get_metadata(session: IrcSession, target: str, keys: tuple[str, ...]) -> dict[str, str]:
    """Return metadata of a user or channel as a dict: the values of ``keys``, or of all keys.

    It is empty if the server does not support METADATA; ``NotSent`` is raised if the server refuses.
    """
    check_target(target)
    if not has_metadata(session):
        return {}
    items = await session.ask(Line("METADATA", (target, "GET", *keys) if keys else (target, "LIST")))
    refused = refusal(items)
    if refused is not None:
        raise NotSent(refused.reason, refused.code)
    return {line.params[2]: line.params[4] for line in lines_of(items) if line.verb == "761" and len(line.params) > 4}


def _sync(session: IrcSession, line: Line) -> None:
    """Send METADATA SYNC after the delay in ``line`` if it is numeric 774, which asks for that."""
    if line.verb != "774" or len(line.params) < 2:
        return
    delay = line.params[2] if len(line.params) > 3 else "0"
    session.write_later(float(delay) if delay.isdigit() else 0.0, Line("METADATA", (line.params[1], "SYNC")))
