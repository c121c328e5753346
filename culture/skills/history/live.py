"""Messages that arrive in a channel while a replay of it is being read."""


class Live:
    """The ids of the messages that have arrived in one channel since a moment."""

    def __init__(self, arrivals: "Arrivals", channel: str) -> None:
        self._arrivals = arrivals
        self._channel = channel
        self._msgids = arrivals.channels.setdefault(channel, [])
        self._first = len(self._msgids)

    def __len__(self) -> int:
        """How many they are."""
        return len(self._msgids) - self._first

    def msgids(self) -> set[str]:
        """Those by now."""
        return set(self._msgids[self._first :])

    def end(self) -> None:
        """Note no more."""
        self._arrivals.end(self, self._channel)


class Arrivals:
    """Notes the messages of those channels that somebody follows, once for all who follow a channel."""

    def __init__(self) -> None:
        self.channels: dict[str, list[str]] = {}
        """By folded name, the ids of what has arrived since the first who still follows began."""
        self._followers: dict[str, set[Live]] = {}

    def follow(self, channel: str) -> Live:
        """Note what arrives in a channel, by its folded name, until ``Live.end``."""
        live = Live(self, channel)
        self._followers.setdefault(channel, set()).add(live)
        return live

    def note(self, channel: str, msgid: str) -> None:
        """A message has arrived."""
        noted = self.channels.get(channel)
        if noted is not None:
            noted.append(msgid)

    def end(self, live: Live, channel: str) -> None:
        """One follows no longer; with the last the ids are forgotten."""
        followers = self._followers.get(channel, set())
        followers.discard(live)
        if not followers:
            self._followers.pop(channel, None)
            self.channels.pop(channel, None)
