"""What one connection was shown of channels: members with ranks, topics, modes; and what it was shown twice."""

from collections import Counter
from dataclasses import dataclass, field

from culture.protocol.message import Message
from culture.protocol.names import fold

_RANKS = {"@": "o", "+": "v"}
_ALWAYS = "ovbeIk"
"""Modes that always have a parameter."""
_WHEN_SET = "lS"


@dataclass(slots=True)
class ShownChannel:
    """A channel as the lines of a connection have shown it."""

    members: dict[str, dict[str, bool]] = field(default_factory=dict)
    """By nick whether it has each rank; a rank that was not shown is missing."""
    topic: str | None = None
    """None until it was shown; "" if there is none."""
    modes: dict[str, bool] = field(default_factory=dict)
    """By letter whether a mode without a parameter is set; what was not shown is missing."""
    topics: Counter[str] = field(default_factory=Counter)


class Shown:
    """The channels of one connection; ``take`` is given each line of the server."""

    def __init__(self) -> None:
        self.channels: dict[str, ShownChannel] = {}
        self.doubles: list[str] = []
        """Lines that tell what the connection had been told before."""
        self._redacted: Counter[str] = Counter()

    def take(self, line: Message, own: str) -> None:
        """Take a line that was sent to the user with this nick."""
        method = getattr(self, f"_on_{line.verb.lower()}", None)
        if method is not None:
            method(line, (line.source or "").partition("!")[0], own)

    def _channel(self, name: str) -> ShownChannel | None:
        return self.channels.get(fold(name))

    def _on_join(self, line: Message, who: str, own: str) -> None:
        channel = self._channel(line.params[0])
        if who == own:
            if channel is not None:
                self.doubles.append(str(line))
            self.channels[fold(line.params[0])] = ShownChannel({own: {}})
        elif channel is not None:
            if who in channel.members:
                self.doubles.append(str(line))
            channel.members[who] = {"o": False, "v": False}

    def _leave(self, name: str, nick: str, own: str, line: Message) -> None:
        channel = self._channel(name)
        if nick == own:
            self.channels.pop(fold(name), None)
        elif channel is not None and channel.members.pop(nick, None) is None:
            self.doubles.append(str(line))

    def _on_part(self, line: Message, who: str, own: str) -> None:
        self._leave(line.params[0], who, own, line)

    def _on_kick(self, line: Message, who: str, own: str) -> None:
        self._leave(line.params[0], line.params[1], own, line)

    def _on_quit(self, line: Message, who: str, own: str) -> None:
        found = [channel for channel in self.channels.values() if channel.members.pop(who, None) is not None]
        if not found:
            self.doubles.append(str(line))

    def _on_nick(self, line: Message, who: str, own: str) -> None:
        for channel in self.channels.values():
            ranks = channel.members.pop(who, None)
            if ranks is not None:
                channel.members[line.params[-1]] = ranks

    def _on_353(self, line: Message, who: str, own: str) -> None:
        channel = self._channel(line.params[2])
        if channel is None:
            return
        for name in line.params[3].split():
            nick = name.lstrip("@+")
            highest = _RANKS.get(name[0])
            if highest == "o":
                channel.members[nick] = {"o": True}  # whether it has +v too is not shown
            else:
                channel.members[nick] = {"o": False, "v": highest == "v"}

    def _on_331(self, line: Message, who: str, own: str) -> None:
        self._topic(line.params[1], "")

    def _on_332(self, line: Message, who: str, own: str) -> None:
        self._topic(line.params[1], line.params[2])

    def _on_topic(self, line: Message, who: str, own: str) -> None:
        self._topic(line.params[0], line.params[1])
        channel = self._channel(line.params[0])
        if channel is not None:
            channel.topics[line.params[1]] += 1
            if channel.topics[line.params[1]] > 1 and line.params[1]:
                self.doubles.append(str(line))

    def _topic(self, name: str, text: str) -> None:
        channel = self._channel(name)
        if channel is not None:
            channel.topic = text

    def _on_366(self, line: Message, who: str, own: str) -> None:
        channel = self._channel(line.params[1])
        if channel is not None and channel.topic is None:
            channel.topic = ""  # a channel without a topic shows none on JOIN

    def _on_324(self, line: Message, who: str, own: str) -> None:
        channel = self._channel(line.params[1])
        if channel is not None:
            channel.modes = dict.fromkeys(channel.modes, False) | dict.fromkeys(line.params[2].lstrip("+"), True)

    def _on_mode(self, line: Message, who: str, own: str) -> None:
        channel = self._channel(line.params[0])
        if channel is None:
            return
        values, is_set = list(line.params[2:]), True
        for letter in line.params[1]:
            if letter in "+-":
                is_set = letter == "+"
            elif letter in _ALWAYS or (letter in _WHEN_SET and is_set):
                value = values.pop(0)
                if letter in "ov" and value in channel.members:
                    channel.members[value][letter] = is_set
            else:
                channel.modes[letter] = is_set

    def _on_redact(self, line: Message, who: str, own: str) -> None:
        self._redacted[line.params[1]] += 1
        if self._redacted[line.params[1]] > 1:
            self.doubles.append(str(line))
