"""Registered channels (+P) outlive members and process: they are saved before any reply."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from culture.lib.files import read_private, replace_file
from culture.protocol.channel_names import fault_in
from culture.protocol.modes import ModeKind
from culture.protocol.names import fold, valid_channel
from culture.protocol.vocabulary import ChannelMode
from culture.runtime import REAL, Runtime
from culture.server.core.isupport import MODE_KINDS
from culture.server.core.network import Network
from culture.server.core.router import Router
from culture.server.core.state import MEMBER_MODES, Channel, ListEntry, Mark, Topic
from culture.server.core.tasks import ServerTasks
from culture.server.errors import StartError
from culture.server.events import ChannelRenamed, MetadataSet, ModeSet, TopicSet
from culture.server.net.poller import Flushable
from culture.server.shapes import Json, UnreadableJson, forward, items, mapping, number, refuse_unknown, text

_FLAGS = {mode for mode, kind in MODE_KINDS.items() if kind is ModeKind.FLAG}
_LISTS = {mode for mode, kind in MODE_KINDS.items() if kind is ModeKind.LIST}
_KNOWN = frozenset(
    {"name", "created", "founder", "topic", "modes", "key", "limit", "shared", "lists", "metadata", "marks"}
)
_BREAKS = ("\r", "\n", "\0")
_LONGEST = 512
_RANKS = tuple(f"{mode}:" for mode in MEMBER_MODES)


def _name_the_parts(document: Json) -> Json:
    """Migrate a file of registered channels from schema 0, an object of channels by name."""
    channels = [{**mapping(channel), "name": name, "metadata": {}} for name, channel in document.items()]
    return {"channels": channels}


# MIGRATIONS[n] converts schema n to schema n + 1.
MIGRATIONS: tuple[Callable[[Json], Json], ...] = (_name_the_parts,)


def dump_channel(channel: Channel) -> str:
    """Return a channel, without its members, as a line for the file of registered channels."""
    topic = channel.topic
    return json.dumps(
        {
            "name": channel.name,
            "created": channel.created,
            "founder": channel.founder,
            "topic": None if topic is None else {"text": topic.text, "by": topic.by, "at": topic.at},
            "modes": "".join(sorted(channel.flags)),
            "key": channel.key,
            "limit": channel.limit,
            "shared": None if channel.shared is None else list(channel.shared),
            "lists": {
                mode: {mask: {"by": entry.by, "at": entry.at} for mask, entry in entries.items()}
                for mode, entries in channel.lists.items()
                if entries
            },
            "metadata": channel.metadata or {},
            "marks": {part: mark for part, mark in channel.marks.items() if not part.startswith(_RANKS)},
        },
        ensure_ascii=False,
    )


def dump(lines: Iterable[str]) -> bytes:
    """Return the contents of the file of registered channels.

    ``lines`` are from ``dump_channel``.
    """
    every = ",\n".join(lines)
    return f'{{"schema": {len(MIGRATIONS)}, "channels": [\n{every}\n]}}\n'.encode()


def parse(data: bytes) -> list[Channel]:
    """Return the channels in a file of registered channels of any schema.

    Raises UnreadableJson if the file is damaged.
    """
    try:
        channels = [
            _channel(mapping(item)) for item in items(forward(mapping(json.loads(data)), MIGRATIONS)["channels"])
        ]
    except UnreadableJson:
        raise
    except KeyError as error:
        raise UnreadableJson(f"{error.args[0]} is missing") from error
    except Exception as error:
        # UnicodeError, RecursionError and others that odd text can cause: never read half a file.
        raise UnreadableJson(str(error)) from error
    if len({fold(channel.name) for channel in channels}) != len(channels):
        raise UnreadableJson("a channel is there twice")
    return channels


def _channel(item: Json) -> Channel:
    """Return a channel from its JSON object; keys that are missing get their defaults.

    Raises UnreadableJson for unknown keys.
    """
    refuse_unknown(item, _KNOWN)
    name = _text(item["name"])
    if not valid_channel(name, _LONGEST):
        raise UnreadableJson(f"{name!r} is not a name for a channel")
    modes, lists = set(_text(item.get("modes", ""))), mapping(item.get("lists", {}))
    if unknown := (modes - _FLAGS) | (lists.keys() - _LISTS):
        raise UnreadableJson(f"{name} has modes that this culture does not know: {''.join(sorted(unknown))}")
    topic, key, limit, shared = (item.get(part) for part in ("topic", "key", "limit", "shared"))
    channel = Channel(
        name=name,
        created=number(item["created"]),
        founder=_text(item["founder"]),
        topic=None if topic is None else _topic(mapping(topic)),
        flags=modes | {ChannelMode.REGISTERED.value},
        key=None if key is None else _text(key),
        limit=None if limit is None else int(number(limit)),
        shared=None if shared is None else tuple(map(_text, items(shared))),
        lists={mode: _entries(mapping(entries)) for mode, entries in lists.items()},
        metadata={key: _text(value) for key, value in mapping(item.get("metadata", {})).items()} or None,
    )
    channel.marks = _marks(channel, mapping(item.get("marks", {})))
    channel.clock = max((mark.version for mark in channel.marks.values()), default=0)
    channel.guard()
    return channel


def _marks(channel: Channel, saved: Json) -> dict[str, Mark]:
    """Return the marks (versions) of a channel's parts: its topic, modes and list entries.

    A part that was saved without one counts as old. ``saved``: the JSON object of the marks in the file.
    """
    parts = [f"{mode}:{mask}" for mode, entries in channel.lists.items() for mask in entries]
    parts += [f"meta:{key}" for key in channel.metadata or {}]
    parts += ["topic"] if channel.topic is not None else []
    parts += [mode for mode, value in (("k", channel.key), ("l", channel.limit), ("S", channel.shared)) if value]
    marks = {part: Mark(0, channel.created, "-", 0) for part in parts}
    for part, mark in saved.items():
        version, at, origin, seq = items(mark)
        marks[_text(part)] = Mark(int(number(version)), number(at), _text(origin), int(number(seq)))
    return marks


def _topic(item: Json) -> Topic:
    return Topic(_text(item["text"]), _text(item["by"]), number(item["at"]))


def _entries(entries: Json) -> dict[str, ListEntry]:
    read = {_text(mask): mapping(entry) for mask, entry in entries.items()}
    return {mask: ListEntry(_text(entry["by"]), number(entry["at"])) for mask, entry in read.items()}


def _text(value: object) -> str:
    """Return the value if it is text without line breaks; raises UnreadableJson otherwise.

    The text is sent to clients unchanged.
    """
    line = text(value)
    if any(each in line for each in _BREAKS):
        raise UnreadableJson(f"{line!r} has a line break in it")
    return line


log = logging.getLogger(__name__)

_TRY_AGAIN = 1.0


class RegisteredChannels:
    """Keeps the file of registered channels up to date.

    The changes of a turn are written once at its end, before any client is told of them.
    """

    def __init__(
        self,
        path: Path,
        network: Network,
        router: Router,
        tasks: ServerTasks,
        dirty: list[Flushable],
        *,
        runtime: Runtime = REAL,
    ) -> None:
        self._path = path
        self._runtime = runtime
        self._network = network
        self._tasks = tasks
        self._dirty = dirty
        self._lines: dict[str, str] = {}
        self._pending = False
        self._is_trying = False
        router.subscribe(self._changed, ModeSet, TopicSet, MetadataSet, ChannelRenamed)

    def restore(self) -> None:
        """Add the channels in the file to the network, without members; raises StartError."""
        try:
            file = read_private(self._path)
            channels = parse(file[0]) if file is not None else []
        except (UnreadableJson, OSError) as error:
            raise StartError(
                f"cannot read the registered channels in {self._path}: {error}\n"
                "Put a good copy of the file in its place, or move it away to start without registered channels."
            ) from error
        for channel in channels:
            if (fault := fault_in(channel.name)) is not None:
                log.warning("the registered channel %s has a name that no new one may have. %s", channel.name, fault)
            self._network.restore(channel)
            self._lines[fold(channel.name)] = dump_channel(channel)

    def flush(self) -> None:
        """Write the file of registered channels if one of these channels has changed.

        On failure, try again until it works. Called at the end of a turn, before clients are told of the changes.
        """
        if not self._pending:
            return
        try:
            replace_file(self._path, dump(self._lines.values()), runtime=self._runtime)
        except OSError as error:
            log.error("cannot write %s (%s); trying again until it works", self._path, error.strerror)
            if not self._is_trying:
                self._is_trying = True
                self._tasks.start(self._try_again())
        else:
            self._pending = False

    async def _try_again(self) -> None:
        while self._pending:
            await asyncio.sleep(_TRY_AGAIN)
            self.flush()
        self._is_trying = False
        log.info("%s is written again", self._path)

    def _changed(self, event: ModeSet | TopicSet | MetadataSet | ChannelRenamed) -> None:
        match event:
            case ChannelRenamed():
                self._note(event.channel)
                self._note(event.new)
            case MetadataSet():
                self._note(event.target)
            case _:
                self._note(event.channel)

    def _note(self, name: str) -> None:
        channel, folded = self._network.channel(name), fold(name)
        line = dump_channel(channel) if channel is not None and channel.is_registered else None
        if self._lines.get(folded) == line:
            return
        if line is None:
            del self._lines[folded]
        else:
            self._lines[folded] = line
        if not self._pending:
            self._pending = True
            self._dirty.insert(0, self)
