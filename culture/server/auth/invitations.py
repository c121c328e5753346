"""Open invitations: one-time keys for a person or a machine, stored as digests."""

import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

from culture.config.model import ServerConfig
from culture.lib.files import private_directory, read_private, replace_file, write_lock
from culture.lib.secret_compare import same_secret
from culture.protocol.names import fold, short_name

MOST = 100  # open invitations
_KEPT = 86_400.0
"""Seconds for which a used or expired key gets a precise answer instead of "unknown"."""
_ID = 8
_BYTES = 24

Kind = Literal["machine", "person"]


class UnreadableInvitations(Exception):
    """The file is damaged."""


class NotInvited(Exception):
    """The key is not valid; ``is_guess`` if it never was, which counts as a failed try."""

    def __init__(self, text: str, is_guess: bool = False) -> None:
        super().__init__(text)
        self.is_guess = is_guess


@dataclass(frozen=True, slots=True)
class Invitation:
    """An invitation; ``name`` is the server or account it is for, empty for any server."""

    kind: Kind
    digest: str = field(repr=False)
    expires: float
    name: str = ""
    trust: str = "full"
    channels: tuple[str, ...] = ()
    used: float | None = None
    by: str = ""
    """The account or server that used it."""

    @property
    def id(self) -> str:
        """Return the id that lists show."""
        return self.digest[:_ID]

    def is_open(self, now: float) -> bool:
        """Return whether the invitation can still be used."""
        return self.used is None and now < self.expires


def path_of(config: ServerConfig) -> Path:
    """Return the path of the invitations file."""
    return config.data_dir / "invitations.json"


def new_key() -> str:
    """Return a new random key."""
    return secrets.token_urlsafe(_BYTES)


def digest_of(key: str) -> str:
    """Return the digest of a key; only the digest is stored."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class Invitations:
    """The invitations file, written by the command line and the server; use it in a thread."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def all(self) -> tuple[Invitation, ...]:
        """Return all invitations, also used and expired ones."""
        file = read_private(self._path)
        if file is None:
            return ()
        try:
            return tuple(_parse(each) for each in json.loads(file[0]))
        except (ValueError, TypeError, KeyError) as error:
            # The error's text may quote the contents of the file.
            raise UnreadableInvitations(f"{self._path}: {type(error).__name__}") from None

    def add(self, invitation: Invitation, now: float) -> None:
        """Add an invitation, replacing open ones for the same person."""

        def added(present: tuple[Invitation, ...]) -> tuple[Invitation, ...]:
            others = [each for each in present if not _is_same_guest(each, invitation) or not each.is_open(now)]
            if sum(each.is_open(now) for each in others) >= MOST:
                raise NotInvited(f"{MOST} invitations are open: take some back first")
            return (*others, invitation)

        self._change(added, now)

    def take_back(self, ids: frozenset[str], now: float) -> int:
        """Close open invitations by id; return how many were closed."""
        closed = 0

        def rest(present: tuple[Invitation, ...]) -> tuple[Invitation, ...]:
            nonlocal closed
            left = tuple(each for each in present if not (each.id in ids and each.is_open(now)))
            closed = len(present) - len(left)
            return left

        self._change(rest, now)
        return closed

    def redeem(self, kind: Kind, key: str, guest: str, now: float, let_in: Callable[[Invitation], None]) -> Invitation:
        """Mark an invitation as used on disk, then call ``let_in``; undo the mark if that raises.

        Raises NotInvited if the key is not valid for this guest.
        """
        with write_lock(self._path):
            invitations = self.all()
            position, invitation = _find(invitations, kind, key)
            _check(invitation, guest, now)
            used = replace(invitation, used=now, by=guest)
            self._write((*invitations[:position], used, *invitations[position + 1 :]))
            try:
                let_in(invitation)
            except BaseException:
                self._write(invitations)
                raise
        return used

    def _change(self, change: Callable[[tuple[Invitation, ...]], tuple[Invitation, ...]], now: float) -> None:
        private_directory(self._path.parent)
        with write_lock(self._path):
            invitations = tuple(each for each in self.all() if now < max(each.expires, each.used or 0.0) + _KEPT)
            self._write(change(invitations))

    def _write(self, invitations: tuple[Invitation, ...]) -> None:
        replace_file(self._path, json.dumps([asdict(each) for each in invitations], indent=1).encode())


def _parse(values: dict[str, object]) -> Invitation:
    invitation = Invitation(**values)  # type: ignore[arg-type]
    if invitation.kind not in ("machine", "person") or not isinstance(invitation.expires, int | float):
        raise ValueError("no invitation")
    return replace(invitation, channels=tuple(invitation.channels))


def _is_same_guest(one: Invitation, other: Invitation) -> bool:
    return bool(one.name) and (one.kind, one.name) == (other.kind, other.name)


def _find(invitations: tuple[Invitation, ...], kind: Kind, key: str) -> tuple[int, Invitation]:
    """Return the invitation of a key and its position; all are compared, for equal timing."""
    digest = digest_of(key)
    matches = [
        (at, each) for at, each in enumerate(invitations) if same_secret(digest, each.digest) and each.kind == kind
    ]
    if not matches:
        raise NotInvited("No such invitation", is_guess=True)
    return matches[0]


def _check(invitation: Invitation, guest: str, now: float) -> None:
    """Refuse a used or expired invitation, or one for another guest."""
    if invitation.used is not None:
        raise NotInvited(f"This invitation was used already, by {invitation.by}: ask for another")
    if now >= invitation.expires:
        raise NotInvited("This invitation has expired: ask for another")
    names = (fold(guest), short_name(fold(guest))) if invitation.kind == "machine" else (fold(guest),)
    if invitation.name and fold(invitation.name) not in names:
        raise NotInvited(f"This invitation is for {invitation.name}")
