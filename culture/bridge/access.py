"""Who may use a bridge: tokens, the codes of owners who consent, and the programs that asked; kept as digests."""

import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from culture.bridge.token_file import Client, Grant, TokenFileContents
from culture.config import paths
from culture.lib.files import FileLock, FileStamp, LockTaken, file_stamp, replace_file
from culture.lib.secret_compare import same_secret
from culture.protocol.names import fold

DAY = 86400.0
LIFETIME = 90 * DAY
ACCESS_LIFETIME, REFRESH_LIFETIME = 3600.0, 30 * DAY
CODE_LIFETIME = 600.0
CONSENT_LIFETIME = 60.0
"""How long a program has to come for its token."""
_AGAIN = 60.0
"""So long a program may show the secret that it has just used: it may not have heard the answer."""
_SPENT = 16
_MOST_CLIENTS = 200
_LETTERS = "ABCDEFGHJKMNPQRSTVWXYZ23456789"
_MARK = "cbt_"

Outcome = TypeVar("Outcome")


class BrokenAccessFile(Exception):
    """The file cannot be read or written; the text says why."""


def digest(secret: str) -> str:
    """What is kept of a random secret."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _plain(code: str) -> str:
    """A code as it was made, however it was typed."""
    return "".join(code.upper().split()).replace("-", "")


class BridgeAccess:
    """The file of a bridge; the command line and a running bridge share it, so each look is at what it says now."""

    def __init__(self, file: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self.file = file or paths.home() / "bridge" / "access.json"
        self._clock = clock
        self._stamp: FileStamp | None = None
        self._contents = TokenFileContents()

    @property
    def exists(self) -> bool:
        """Whether there ever was a token: then none is let in without."""
        return self.file.exists()

    # Tokens

    def issue(
        self, names: tuple[str, ...], channels: tuple[str, ...] = (), lifetime: float = LIFETIME
    ) -> tuple[Grant, str]:
        """A new token, with the secret, which is nowhere else."""
        secret = _MARK + secrets.token_urlsafe(32)
        grant = self._grant(names, channels, lifetime, digest=digest(secret))
        self._change(lambda now: (now.model_copy(update={"grants": (*now.grants, grant)}), None))
        return grant, secret

    def grants(self) -> tuple[Grant, ...]:
        """All tokens, those that have expired too."""
        return tuple(each for each in self._look().grants if each.digest)

    def revoke(self, *words: str) -> int:
        """Take back what has one of these ids or nicks, codes that nobody has used yet too; how many."""
        wanted = set(map(fold, words))

        def is_left(each: Grant) -> bool:
            return each.id not in words and fold(each.names[0]) not in wanted

        def without(now: TokenFileContents) -> tuple[TokenFileContents, int]:
            grants, codes = tuple(filter(is_left, now.grants)), tuple(filter(is_left, now.codes))
            number = len(now.grants) + len(now.codes) - len(grants) - len(codes)
            return now.model_copy(update={"grants": grants, "codes": codes}), number

        return self._change(without)

    def shown(self, secret: str) -> Grant | None:
        """The token that was shown, if it holds. All are compared, whichever it is."""
        wanted, now = digest(secret), self._clock()
        found = [each for each in self._look().grants if same_secret(each.digest, wanted)]
        return next((each for each in found if each.expires > now), None)

    # Consent

    def make_code(self, names: tuple[str, ...], channels: tuple[str, ...] = ()) -> str:
        """A code that its owner types once into the consent page."""
        code = "".join(secrets.choice(_LETTERS) for _ in range(12))
        grant = self._grant(names, channels, CODE_LIFETIME, digest=digest(code))
        self._change(lambda now: (now.model_copy(update={"codes": (*now.codes, grant)}), None))
        return "-".join((code[:4], code[4:8], code[8:]))

    def redeem(self, code: str) -> Grant | None:
        """What the owner of this code consents to, for `open`; the code is used up by this."""
        wanted, now = digest(_plain(code)), self._clock()

        def used(contents: TokenFileContents) -> tuple[TokenFileContents, Grant | None]:
            [*found] = (each for each in contents.codes if same_secret(each.digest, wanted) and each.expires > now)
            if not found:
                return contents, None
            left = tuple(each for each in contents.codes if each not in found)
            consented = found[0].model_copy(update={"digest": "", "expires": now + CONSENT_LIFETIME})
            return contents.model_copy(update={"codes": left, "grants": (*contents.grants, consented)}), consented

        return self._change(used)

    def open(self, consented: Grant, client: str) -> tuple[str, str] | None:
        """A token for a program that was consented to, and the secret for the next one; None when taken back."""
        return self._replace(consented, consented.model_copy(update={"client": client}))

    def refreshable(self, secret: str, client: str) -> Grant | None:
        """The token that this secret renews."""
        wanted, now = digest(secret), self._clock()
        found = [each for each in self._look().grants if each.refresh and same_secret(each.refresh, wanted)]
        return next((each for each in found if each.client == client and each.ends > now), None)

    def renew(self, known: Grant) -> tuple[str, str] | None:
        """The next token in place of this one; None when it was taken back or renewed meanwhile."""
        return self._replace(known, known.model_copy(update={"spent": (*known.spent, known.refresh)[-_SPENT:]}))

    def end_stolen(self, secret: str, client: str) -> Grant | None:
        """The token whose renewal was shown a second time, by a thief or after one; it holds no longer."""
        wanted, now = digest(secret), self._clock()

        def ended(contents: TokenFileContents) -> tuple[TokenFileContents, Grant | None]:
            theirs = (each for each in contents.grants if each.client == client)
            found = next((each for each in theirs if True in [same_secret(old, wanted) for old in each.spent]), None)
            renewed = found.expires - ACCESS_LIFETIME if found else now
            if found is None or (same_secret(found.spent[-1], wanted) and abs(now - renewed) < _AGAIN):
                return contents, None
            others = tuple(each for each in contents.grants if each != found)
            return contents.model_copy(update={"grants": others}), found

        return self._change(ended)

    def register(self, client: Client) -> None:
        """Keep a program's registration; the oldest that nobody consented to makes room."""

        def added(now: TokenFileContents) -> tuple[TokenFileContents, None]:
            used = {each.client for each in now.grants}
            rest = [each for each in now.clients if each.id not in used][-_MOST_CLIENTS:]
            kept = (*(each for each in now.clients if each.id in used), *rest, client)
            return now.model_copy(update={"clients": kept}), None

        self._change(added)

    def client(self, id: str) -> Client | None:
        """A program that registered itself."""
        return next((each for each in self._look().clients if each.id == id), None)

    # The file

    def _grant(self, names: tuple[str, ...], channels: tuple[str, ...], lifetime: float, digest: str) -> Grant:
        now = self._clock()
        return Grant(
            id=secrets.token_hex(4), names=names, channels=channels, made=now, expires=now + lifetime, digest=digest
        )

    def _replace(self, known: Grant, by: Grant) -> tuple[str, str] | None:
        """Secrets for what comes in place of this one; None when it is there no longer."""
        access, refresh = _MARK + secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        now = self._clock()
        fresh = {"digest": digest(access), "refresh": digest(refresh), "expires": now + ACCESS_LIFETIME}
        grant = by.model_copy(update={**fresh, "ends": now + REFRESH_LIFETIME})

        def replaced(contents: TokenFileContents) -> tuple[TokenFileContents, bool]:
            if known not in contents.grants:
                return contents, False
            others = tuple(each for each in contents.grants if each != known)
            return contents.model_copy(update={"grants": (*others, grant)}), True

        return (access, refresh) if self._change(replaced) else None

    def _look(self) -> TokenFileContents:
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
        with self._held():
            before = self._look()
            contents, outcome = change(before)
            if contents != before:
                self._write(self._without_old(contents))
            return outcome

    def _without_old(self, contents: TokenFileContents) -> TokenFileContents:
        now = self._clock()
        grants = (each for each in contents.grants if each.lasts_until > now - (LIFETIME if each.digest else 0))
        codes = (each for each in contents.codes if each.expires > now)
        return contents.model_copy(update={"grants": tuple(grants), "codes": tuple(codes)})

    @contextmanager
    def _held(self) -> Iterator[None]:
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
