"""Open invitations: one-time keys for a person or a machine, stored as digests."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

from culture.config.model import ServerConfig
from culture.lib.files import private_directory, read_private, replace_file, write_lock
from culture.lib.secret_compare import same_secret
from culture.protocol.names import fold, short_name
from culture.runtime import REAL, Runtime

MOST = 100  # open invitations
_KEPT = 86_400.0
"""Seconds for which a used or expired key gets a precise answer instead of "unknown"."""
_ID = 8
_BYTES = 24

Kind = Literal["machine", "person"]


class UnreadableInvitations(Exception):
    """The invitations file is damaged."""


class NotInvited(Exception):
    """The key of an invitation is not valid here.

    ``is_guess``: no invitation ever had this key, so the attempt counts as a failed login.
    """

    def __init__(self, text: str, is_guess: bool = False) -> None:
        super().__init__(text)
        self.is_guess = is_guess


@dataclass(frozen=True, slots=True)
class Invitation:
    """An invitation for a person or machine.

    ``name`` is the account or server that may use it, empty for any server.
    """

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
        """Return the id by which lists show the invitation."""
        return self.digest[:_ID]

    def is_open(self, now: float) -> bool:
        """Return whether the invitation is unused, and not expired at the time ``now``."""
        return self.used is None and now < self.expires


def path_of(config: ServerConfig) -> Path:
    """Return the path of the invitations file of the server with this configuration."""
    return config.data_dir / "invitations.json"


def new_key(*, runtime: Runtime = REAL) -> str:
    """Return a new random key for an invitation."""
    return runtime.token_urlsafe(_BYTES)


def digest_of(key: str) -> str:
    """Return the digest of an invitation's key; the key itself is not stored."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class Invitations:
    """The invitations file, written by the command line and the server; use it in a thread."""

    def __init__(self, path: Path, *, runtime: Runtime = REAL) -> None:
        self._path = path
        self._runtime = runtime

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
        """Add an invitation; it replaces an open one for the same person or machine.

        ``now``: seconds since 1970, by which expired ones are found. Raises NotInvited if too many invitations are
        open.
        """

        def added(present: tuple[Invitation, ...]) -> tuple[Invitation, ...]:
            others = [each for each in present if not _is_same_guest(each, invitation) or not each.is_open(now)]
            if sum(each.is_open(now) for each in others) >= MOST:
                raise NotInvited(f"{MOST} invitations are open: take some back first")
            return (*others, invitation)

        self._change(added, now)

    def take_back(self, ids: frozenset[str], now: float) -> int:
        """Delete the open invitations that have one of these ids; return how many there were.

        ``now``: seconds since 1970; expired invitations are not open.
        """
        closed = 0

        def rest(present: tuple[Invitation, ...]) -> tuple[Invitation, ...]:
            nonlocal closed
            left = tuple(each for each in present if not (each.id in ids and each.is_open(now)))
            closed = len(present) - len(left)
            return left

        self._change(rest, now)
        return closed

    def redeem(self, kind: Kind, key: str, guest: str, now: float, let_in: Callable[[Invitation], None]) -> Invitation:
        """Record that ``guest`` used the invitation with this key, call ``let_in``, and return it.

        ``kind``: person or machine; ``now``: seconds since 1970. ``let_in`` gives the guest access; if it raises, the
        invitation is open again. Raises NotInvited if the key is not valid for this guest.
        """
        with write_lock(self._path, runtime=self._runtime):
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
        with write_lock(self._path, runtime=self._runtime):
            invitations = tuple(each for each in self.all() if now < max(each.expires, each.used or 0.0) + _KEPT)
            self._write(change(invitations))

    def _write(self, invitations: tuple[Invitation, ...]) -> None:
        data = json.dumps([asdict(each) for each in invitations], indent=1).encode()
        replace_file(self._path, data, runtime=self._runtime)


def _parse(values: dict[str, object]) -> Invitation:
    invitation = Invitation(**values)  # type: ignore[arg-type]
    if invitation.kind not in ("machine", "person") or not isinstance(invitation.expires, int | float):
        raise ValueError("no invitation")
    return replace(invitation, channels=tuple(invitation.channels))


def _is_same_guest(one: Invitation, other: Invitation) -> bool:
    return bool(one.name) and (one.kind, one.name) == (other.kind, other.name)


def _find(invitations: tuple[Invitation, ...], kind: Kind, key: str) -> tuple[int, Invitation]:
    """Return the invitation with this key, after its position in the list.

    Raises NotInvited if none has the key. The key is compared with all invitations, so that the time taken tells
    nothing.
    """
    digest = digest_of(key)
    matches = [
        (at, each) for at, each in enumerate(invitations) if same_secret(digest, each.digest) and each.kind == kind
    ]
    if not matches:
        raise NotInvited("No such invitation", is_guess=True)
    return matches[0]


def _check(invitation: Invitation, guest: str, now: float) -> None:
    """Raise NotInvited for an invitation that is used, expired at ``now``, or for another guest."""
    if invitation.used is not None:
        raise NotInvited(f"This invitation was used already, by {invitation.by}: ask for another")
    if now >= invitation.expires:
        raise NotInvited("This invitation has expired: ask for another")
    names = (fold(guest), short_name(fold(guest))) if invitation.kind == "machine" else (fold(guest),)
    if invitation.name and fold(invitation.name) not in names:
        raise NotInvited(f"This invitation is for {invitation.name}")
