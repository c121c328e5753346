"""Read markers: how far each user has read (IRCv3 draft/read-marker); saved for accounts."""

import json
import logging
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from culture.lib.files import read_private, replace_file
from culture.protocol.message import Message
from culture.protocol.names import fold
from culture.runtime import REAL, Runtime
from culture.server.core.encode import wire
from culture.server.core.router import Router
from culture.server.core.session import Session
from culture.server.core.state import User
from culture.server.events import ChannelRenamed, Joined, nick_of

log = logging.getLogger(__name__)

CAP = "draft/read-marker"
VERB = "MARKREAD"
_SCHEMA = 1
_MOST = 20_000  # markers of all accounts together
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)

Markers = dict[str, str]


def valid_time(text: str) -> bool:
    """Return whether the text is a time in the form of IRCv3 server-time.

    Texts in this form sort in the order of their times.
    """
    if not _TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return False
    return True


class ReadMarkers:
    """The read markers of each account, and of each connected user without one."""

    def __init__(self, router: Router, path: Path, *, runtime: Runtime = REAL) -> None:
        self._router = router
        self._path = path
        self._runtime = runtime
        self._accounts = _load(path)
        self._guests: dict[User, Markers] = {}
        self._is_changed = False
        self._writing = runtime.lock()
        router.subscribe(self._joined, Joined)
        router.subscribe(self._renamed, ChannelRenamed)

    def get(self, user: User, target: str) -> str | None:
        """Return the time up to which the user has read ``target`` (a channel or nick), or None."""
        return self._of(user).get(fold(target))

    def set(self, user: User, target: str, time: str, most: int) -> bool:
        """Set the time up to which the user has read ``target``; return whether that was later.

        An earlier time changes nothing. Above ``most`` markers of the user, those that changed longest ago are dropped.
        """
        markers, folded = self._of(user), fold(target)
        if time <= markers.get(folded, ""):
            return False
        markers.pop(folded, None)
        markers[folded] = time
        while len(markers) > most:
            del markers[next(iter(markers))]
        if user.account is None:
            self._guests[user] = markers
        else:
            # Accounts in order of their last change: the oldest are dropped first.
            self._accounts.pop(user.account, None)
            self._accounts[user.account] = markers
            self._is_changed = True
        return True

    def show(self, sessions: Iterable[Session], user: User, target: str) -> None:
        """Send to these sessions how far the user has read ``target``, a channel or nick."""
        time = self.get(user, target)
        line = wire(Message(VERB, (target, "*" if time is None else f"timestamp={time}"), self._router.name))
        for session in sessions:
            session.send(line)

    def sessions(self, user: User) -> list[Session]:
        """Return the user's sessions that have the capability draft/read-marker."""
        return [session for session in self._router.sessions.get(user, ()) if CAP in session.caps.enabled]

    def changed(self) -> bytes | None:
        """Return new contents for the file of read markers, or None.

        None if no marker has changed since the last call.
        """
        if not self._is_changed:
            return None
        self._is_changed = False
        self._trim()
        return json.dumps({"schema": _SCHEMA, "markers": self._accounts}).encode()

    def write(self, data: bytes) -> None:
        """Write the file of read markers, in any thread; ``data``: its new contents.

        A failure is logged, and the file is written with the next change.
        """
        with self._writing:
            try:
                replace_file(self._path, data, runtime=self._runtime)
            except OSError as error:
                self._is_changed = True
                log.error("cannot write %s: %s", self._path, error.strerror)

    def forget(self, session: Session) -> None:
        """Drop the read markers of an ended session's user if the user has no account."""
        if session.user is not None:
            self._guests.pop(session.user, None)

    def _trim(self) -> None:
        excess = sum(map(len, self._accounts.values())) - _MOST
        for account in list(self._accounts):
            if excess <= 0:
                return
            excess -= len(self._accounts.pop(account))

    def _of(self, user: User) -> Markers:
        return (self._guests.get(user) if user.account is None else self._accounts.get(user.account)) or {}

    def _joined(self, event: Joined) -> None:
        user = self._router.network.user(nick_of(event.source))
        if user is not None and (sessions := self.sessions(user)):
            self.show(sessions, user, event.channel)

    def _renamed(self, event: ChannelRenamed) -> None:
        old, new = fold(event.channel), fold(event.new)
        for markers in chain(self._accounts.values(), self._guests.values()):
            if old in markers:
                markers[new] = markers.pop(old)
                self._is_changed = True


def _load(path: Path) -> dict[str, Markers]:
    """Return the saved read markers by account.

    If the file is unreadable, move it aside, return none.
    """
    file = read_private(path)
    if file is None:
        return {}
    try:
        return _parse(file[0])
    except (ValueError, RecursionError) as error:
        aside = path.with_suffix(".unreadable")
        path.replace(aside)
        log.error("the read markers in %s cannot be read (%s); they are in %s, and all start empty", path, error, aside)
        return {}


def _parse(data: bytes) -> dict[str, Markers]:
    document = json.loads(data)
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        raise ValueError(f"not of schema {_SCHEMA}")
    accounts = document.get("markers")
    if not isinstance(accounts, dict) or not all(isinstance(markers, dict) for markers in accounts.values()):
        raise ValueError("no markers by account")
    for markers in accounts.values():
        if not all(isinstance(time, str) and valid_time(time) for time in markers.values()):
            raise ValueError("not a time")
    return accounts
