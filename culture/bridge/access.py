"""Access to a bridge: tokens, consent codes, registered programs; stores digests only.

A program gets in with a bearer token. There are two ways to one: the owner creates it on the command line (``issue``),
or a remote program registers itself, the owner types a one-time code into the consent page (``make_code``,
``redeem``), and the program gets a short-lived token with a refresh secret (``open``, ``renew``). A refresh secret
works once; one that is used a second time was stolen, so the whole grant ends (``end_stolen``). Only a retry of the
latest one shortly after its use is tolerated, as the program may not have received the answer.
"""

import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from culture.bridge.callers import Caller
from culture.config import paths
from culture.lib.files import FileLock, FileStamp, LockTaken, file_stamp, replace_file
from culture.lib.secret_compare import same_secret
from culture.protocol.names import fold

DAY = 86400.0
LIFETIME = 90 * DAY
ACCESS_LIFETIME, REFRESH_LIFETIME = 3600.0, 30 * DAY
CODE_LIFETIME = 600.0
CONSENT_LIFETIME = 60.0
"""Seconds that a program has to fetch its token after consent."""
_RETRY_WINDOW = 60.0
"""Seconds in which a program may repeat its latest refresh: it may not have received the answer."""
_MAX_SPENT = 16
_MOST_CLIENTS = 200
_LETTERS = "ABCDEFGHJKMNPQRSTVWXYZ23456789"
_MARK = "cbt_"

Outcome = TypeVar("Outcome")


class StoredRecord(BaseModel):
    """Base class of the records in the bridge's access file."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Grant(StoredRecord):
    """The right of a program to act as some nicks for some time, in one of three forms.

    It is a token, a one-time code, or a consent for which the program has no token yet.
    """

    id: str
    names: tuple[str, ...]
    """The own nick, then others to act as."""
    channels: tuple[str, ...] = ()
    made: float
    expires: float
    digest: str = ""
    """Digest of the secret; empty between consent and the program's first request."""
    client: str = ""
    """Id of the program that got it by consent."""
    refresh: str = ""
    """Digest of the refresh secret."""
    spent: tuple[str, ...] = ()
    """Digests of used refresh secrets, the newest last: a second use means theft."""
    ends: float = 0.0
    """Time after which it cannot be renewed."""

    @property
    def lasts_until(self) -> float:
        """Time (seconds since 1970) after which the token can be neither used nor renewed."""
        return max(self.expires, self.ends)

    @property
    def caller(self) -> Caller:
        """The nicks, channels and rate limit key of a program that has this grant."""
        return Caller(self.id, self.names, self.channels)


class Client(StoredRecord):
    """A program that registered for OAuth: its id and its registration as JSON."""

    id: str
    information: str


class TokenFileContents(StoredRecord):
    """Contents of the access file: grants, unused one-time codes and registered programs."""

    grants: tuple[Grant, ...] = ()
    codes: tuple[Grant, ...] = ()
    clients: tuple[Client, ...] = ()


class BrokenAccessFile(Exception):
    """The bridge's access file cannot be read or written; the text says why."""


def digest(secret: str) -> str:
    """Return the SHA-256 digest that is stored in place of a secret."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _normalize(code: str) -> str:
    """Return a one-time code, as a person typed it, in capitals without spaces and hyphens."""
    return "".join(code.upper().split()).replace("-", "")


class BridgeAccess:
    """The access file of a bridge: creates, finds, renews and revokes tokens and one-time codes.

    The file is read again when another process, such as the command line, has changed it.
    """

    def __init__(self, file: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self.file = file or paths.home() / "bridge" / "access.json"
        self._clock = clock
        self._stamp: FileStamp | None = None
        self._contents = TokenFileContents()

    @property
    def exists(self) -> bool:
        """Whether a token or one-time code was ever created; from then on every call needs a token."""
        return self.file.exists()

    # Tokens

    def issue(
        self, names: tuple[str, ...], channels: tuple[str, ...] = (), lifetime: float = LIFETIME
    ) -> tuple[Grant, str]:
        """Create a bearer token; return its grant and its secret, of which only a digest is stored.

        ``names``: the nick to act as, then other allowed nicks. ``channels``: the IRC channels to join. ``lifetime``:
        in seconds.
        """
        secret = _MARK + secrets.token_urlsafe(32)
        grant = self._grant(names, channels, lifetime, digest=digest(secret))
        self._change(lambda now: (now.model_copy(update={"grants": (*now.grants, grant)}), None))
        return grant, secret

    def grants(self) -> tuple[Grant, ...]:
        """Return the grants of all tokens in the access file, also of expired ones."""
        return tuple(each for each in self._read().grants if each.digest)

    def revoke(self, *words: str) -> int:
        """Revoke tokens, consents and unused one-time codes; return how many were revoked.

        ``words``: ids of grants, or nicks; a nick stands for all grants of which it is the first nick.
        """
        nicks = set(map(fold, words))

        def remains(each: Grant) -> bool:
            return each.id not in words and fold(each.names[0]) not in nicks

        def without(now: TokenFileContents) -> tuple[TokenFileContents, int]:
            grants, codes = tuple(filter(remains, now.grants)), tuple(filter(remains, now.codes))
            number = len(now.grants) + len(now.codes) - len(grants) - len(codes)
            return now.model_copy(update={"grants": grants, "codes": codes}), number

        return self._change(without)

    def find(self, secret: str) -> Grant | None:
        """Return the grant of the valid token with this secret, or None; compares in constant time."""
        hashed, now = digest(secret), self._clock()
        matches = [each for each in self._read().grants if same_secret(each.digest, hashed)]
        return next((each for each in matches if each.expires > now), None)

    # Consent

    def make_code(self, names: tuple[str, ...], channels: tuple[str, ...] = ()) -> str:
        """Return a new one-time code for the owner of a bridge to type into the OAuth consent page.

        A program that gets a token by the code may act as the nicks ``names`` and joins ``channels``.
        """
        code = "".join(secrets.choice(_LETTERS) for _ in range(12))
        grant = self._grant(names, channels, CODE_LIFETIME, digest=digest(code))
        self._change(lambda now: (now.model_copy(update={"codes": (*now.codes, grant)}), None))
        return "-".join((code[:4], code[4:8], code[8:]))

    def redeem(self, code: str) -> Grant | None:
        """Use up a one-time code; return the grant that it gives, or None if the code is invalid.

        The grant has no token until it is passed to ``open``.
        """
        hashed, now = digest(_normalize(code)), self._clock()

        def use(contents: TokenFileContents) -> tuple[TokenFileContents, Grant | None]:
            [*matches] = (each for each in contents.codes if same_secret(each.digest, hashed) and each.expires > now)
            if not matches:
                return contents, None
            others = tuple(each for each in contents.codes if each not in matches)
            consented = matches[0].model_copy(update={"digest": "", "expires": now + CONSENT_LIFETIME})
            return contents.model_copy(update={"codes": others, "grants": (*contents.grants, consented)}), consented

        return self._change(use)

    def open(self, consented: Grant, client: str) -> tuple[str, str] | None:
        """Create a token for a program that got the owner's consent; return its secrets.

        The first secret is the access token, the second the refresh token. ``consented``: the grant that ``redeem``
        returned. ``client``: id of the program. Returns None if the grant was revoked meanwhile.
        """
        return self._replace(consented, consented.model_copy(update={"client": client}))

    def refreshable(self, secret: str, client: str) -> Grant | None:
        """Return the grant whose token a program can renew with this refresh secret, or None.

        ``client``: id of the program; the secret is valid for no other program.
        """
        hashed, now = digest(secret), self._clock()
        matches = [each for each in self._read().grants if each.refresh and same_secret(each.refresh, hashed)]
        return next((each for each in matches if each.client == client and each.ends > now), None)

    def renew(self, grant: Grant) -> tuple[str, str] | None:
        """Give a grant a new token instead of the old one; return the new access and refresh secret.

        Returns None if the token was renewed or revoked meanwhile.
        """
        return self._replace(grant, grant.model_copy(update={"spent": (*grant.spent, grant.refresh)[-_MAX_SPENT:]}))

    def end_stolen(self, secret: str, client: str) -> Grant | None:
        """Delete and return the grant whose refresh secret is used a second time, which means theft.

        ``client``: id of the program. Returns None if the program never had this refresh secret or has not used it
        before, or if this is a retry shortly after the first use.
        """
        hashed, now = digest(secret), self._clock()

        def end(contents: TokenFileContents) -> tuple[TokenFileContents, Grant | None]:
            theirs = (each for each in contents.grants if each.client == client)
            stolen = next((each for each in theirs if True in [same_secret(old, hashed) for old in each.spent]), None)
            renewed_at = stolen.expires - ACCESS_LIFETIME if stolen else now
            if stolen is None or (same_secret(stolen.spent[-1], hashed) and abs(now - renewed_at) < _RETRY_WINDOW):
                return contents, None
            others = tuple(each for each in contents.grants if each != stolen)
            return contents.model_copy(update={"grants": others}), stolen

        return self._change(end)

    def register(self, client: Client) -> None:
        """Store a program's registration; of programs without a grant only the newest are kept."""

        def add(now: TokenFileContents) -> tuple[TokenFileContents, None]:
            used = {each.client for each in now.grants}
            rest = [each for each in now.clients if each.id not in used][-_MOST_CLIENTS:]
            clients = (*(each for each in now.clients if each.id in used), *rest, client)
            return now.model_copy(update={"clients": clients}), None

        self._change(add)

    def client(self, id: str) -> Client | None:
        """Return the registered program with this OAuth client id, or None."""
        return next((each for each in self._read().clients if each.id == id), None)

    # The file

    def _grant(self, names: tuple[str, ...], channels: tuple[str, ...], lifetime: float, digest: str) -> Grant:
        now = self._clock()
        return Grant(
            id=secrets.token_hex(4), names=names, channels=channels, made=now, expires=now + lifetime, digest=digest
        )

    def _replace(self, old: Grant, new: Grant) -> tuple[str, str] | None:
        """Replace the grant ``old`` by ``new`` with new secrets; return access and refresh secret.

        Returns None if ``old`` is no longer in the access file.
        """
        access, refresh = _MARK + secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        now = self._clock()
        fresh = {"digest": digest(access), "refresh": digest(refresh), "expires": now + ACCESS_LIFETIME}
        grant = new.model_copy(update={**fresh, "ends": now + REFRESH_LIFETIME})

        def swap(contents: TokenFileContents) -> tuple[TokenFileContents, bool]:
            if old not in contents.grants:
                return contents, False
            others = tuple(each for each in contents.grants if each != old)
            return contents.model_copy(update={"grants": (*others, grant)}), True

        return (access, refresh) if self._change(swap) else None

    def _read(self) -> TokenFileContents:
        try:
            stamp = file_stamp(self.file)
            if stamp is None:
                return TokenFileContents()
            if stamp != self._stamp:
                self._contents = TokenFileContents.model_validate_json(self.file.read_bytes())
                self._stamp = stamp
        except FileNotFoundError:
            return TokenFileContents()
        except (OSError, ValidationError) as error:
            raise BrokenAccessFile(f"{self.file} cannot be read: {type(error).__name__}") from None
        return self._contents

    def _change(self, change: Callable[[TokenFileContents], tuple[TokenFileContents, Outcome]]) -> Outcome:
        with self._locked():
            before = self._read()
            contents, outcome = change(before)
            if contents != before:
                self._write(self._without_expired(contents))
            return outcome

    def _without_expired(self, contents: TokenFileContents) -> TokenFileContents:
        now = self._clock()
        grants = (each for each in contents.grants if each.lasts_until > now - (LIFETIME if each.digest else 0))
        codes = (each for each in contents.codes if each.expires > now)
        return contents.model_copy(update={"grants": tuple(grants), "codes": tuple(codes)})

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = FileLock(self.file.with_suffix(".lock"))
        try:
            lock.acquire(str(os.getpid()))
        except LockTaken:
            raise BrokenAccessFile(f"{self.file} is being changed by somebody else") from None
        try:
            yield
        finally:
            lock.release()

    def _write(self, contents: TokenFileContents) -> None:
        replace_file(self.file, json.dumps(contents.model_dump(), indent=1))
