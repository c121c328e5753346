"""Invitations that are open: one-time keys with which a machine or a person comes in once, kept as digests."""

import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

from culture.config.model import ServerConfig
from culture.config.paths import private_directory
from culture.config.secret_compare import same_secret
from culture.protocol.names import fold, short_name
from culture.server import disk

MOST = 100
_KEPT = 86_400.0
"""Seconds for which whoever comes late or twice is told so, and not that the key is unknown."""
_ID = 8
_BYTES = 24

Kind = Literal["machine", "person"]


class UnreadableInvitations(Exception):
    """The file is not what was written there."""


class NotInvited(Exception):
    """The key opens nothing; ``is_guess`` where it never did, which counts as a failed try."""

    def __init__(self, text: str, is_guess: bool = False) -> None:
        super().__init__(text)
        self.is_guess = is_guess


@dataclass(frozen=True, slots=True)
class Invitation:
    """One of them; ``name`` is whom it is for, the server or the account, empty for any server."""

    kind: Kind
    digest: str = field(repr=False)
    expires: float
    name: str = ""
    trust: str = "full"
    channels: tuple[str, ...] = ()
    used: float | None = None
    by: str = ""
    """Who came in with it."""

    @property
    def id(self) -> str:
        """What it is called where it is listed."""
        return self.digest[:_ID]

    def is_open(self, now: float) -> bool:
        """May somebody still come in with it?"""
        return self.used is None and now < self.expires


def path_of(config: ServerConfig) -> Path:
    """Where they are."""
    return config.data_dir / "invitations.json"


def new_key() -> str:
    """A key that nobody guesses."""
    return secrets.token_urlsafe(_BYTES)


def digest_of(key: str) -> str:
    """What is kept of a key."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class Invitations:
    """The file that the command line writes and the server looks at; only within a thread on the event loop."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def all(self) -> tuple[Invitation, ...]:
        """Also those that were used, or whose time is over."""
        found = disk.read(self._path)
        if found is None:
            return ()
        try:
            return tuple(_parsed(each) for each in json.loads(found[0]))
        except (ValueError, TypeError, KeyError) as error:
            # The text of the error may quote what is in the file.
            raise UnreadableInvitations(f"{self._path}: {type(error).__name__}") from None

    def add(self, invitation: Invitation, now: float) -> None:
        """Open one more; in place of others for the same person."""

        def added(known: tuple[Invitation, ...]) -> tuple[Invitation, ...]:
            others = [each for each in known if not _is_same_guest(each, invitation) or not each.is_open(now)]
            if sum(each.is_open(now) for each in others) >= MOST:
                raise NotInvited(f"{MOST} invitations are open: take some back first")
            return (*others, invitation)

        self._change(added, now)

    def take_back(self, ids: frozenset[str], now: float) -> int:
        """Close these open ones; how many there were."""
        closed = 0

        def rest(known: tuple[Invitation, ...]) -> tuple[Invitation, ...]:
            nonlocal closed
            kept = tuple(each for each in known if not (each.id in ids and each.is_open(now)))
            closed = len(known) - len(kept)
            return kept

        self._change(rest, now)
        return closed

    def redeem(self, kind: Kind, key: str, guest: str, now: float, let_in: Callable[[Invitation], None]) -> Invitation:
        """Let somebody in, once: the key is used up on disk before ``let_in`` is called, and good again if that raises.

        Raises NotInvited.
        """
        with disk.writing(self._path):
            known = self.all()
            position, found = _found(known, kind, key)
            _check(found, guest, now)
            used = replace(found, used=now, by=guest)
            self._write((*known[:position], used, *known[position + 1 :]))
            try:
                let_in(found)
            except BaseException:
                self._write(known)
                raise
        return used

    def _change(self, change: Callable[[tuple[Invitation, ...]], tuple[Invitation, ...]], now: float) -> None:
        private_directory(self._path.parent)
        with disk.writing(self._path):
            known = tuple(each for each in self.all() if now < max(each.expires, each.used or 0.0) + _KEPT)
            self._write(change(known))

    def _write(self, known: tuple[Invitation, ...]) -> None:
        disk.replace(self._path, json.dumps([asdict(each) for each in known], indent=1).encode())


def _parsed(said: dict[str, object]) -> Invitation:
    made = Invitation(**said)  # type: ignore[arg-type]
    if made.kind not in ("machine", "person") or not isinstance(made.expires, int | float):
        raise ValueError("no invitation")
    return replace(made, channels=tuple(made.channels))


def _is_same_guest(one: Invitation, other: Invitation) -> bool:
    return bool(one.name) and (one.kind, one.name) == (other.kind, other.name)


def _found(known: tuple[Invitation, ...], kind: Kind, key: str) -> tuple[int, Invitation]:
    """All are compared, whatever the first ones say."""
    digest = digest_of(key)
    found = [(at, each) for at, each in enumerate(known) if same_secret(digest, each.digest) and each.kind == kind]
    if not found:
        raise NotInvited("No such invitation", is_guess=True)
    return found[0]


def _check(invitation: Invitation, guest: str, now: float) -> None:
    """Only who has the key is told what became of it."""
    if invitation.used is not None:
        raise NotInvited(f"This invitation was used already, by {invitation.by}: ask for another")
    if now >= invitation.expires:
        raise NotInvited("This invitation has expired: ask for another")
    names = (fold(guest), short_name(fold(guest))) if invitation.kind == "machine" else (fold(guest),)
    if invitation.name and fold(invitation.name) not in names:
        raise NotInvited(f"This invitation is for {invitation.name}")
