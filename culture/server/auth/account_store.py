"""All accounts of a server, kept in one file that the command line and running servers share."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from culture.protocol.names import fold
from culture.protocol.vocabulary import UserClass
from culture.server import disk
from culture.server.auth import account_file
from culture.server.auth.account_file import AccountFileContents
from culture.server.auth.accounts import (
    Account,
    AccountRefused,
    AccountsError,
    NameTaken,
    NoSuchAccount,
    Revoked,
    Subject,
    Token,
    fingerprint,
    new_account,
    now,
    token_label,
)
from culture.server.auth.password import PasswordVerifier, new_token, token_digest
from culture.server.shapes import UnreadableJson


class Changes(NamedTuple):
    """Names of accounts that are new or different, and of those that may not log in any longer."""

    changed: frozenset[str]
    revoked: frozenset[str]


class AccountSnapshot(NamedTuple):
    """One version of the file with its indexes; never changed, only replaced."""

    contents: AccountFileContents
    names: Mapping[str, Account]
    owners: Mapping[str, Account]
    certificates: Mapping[str, Account]
    subjects: Mapping[Subject, Account]
    stamp: disk.FileStamp | None


class AccountStore:
    """The accounts; reading is a look into memory, and every change is on disk when the call returns.

    A change waits for the disk and for other writers: on the event loop, run it in a thread. ``prefix`` is the
    server's short name where nicks begin with it: ``ori`` and ``spark-ori`` are then one name.
    """

    def __init__(self, path: Path, prefix: str = "") -> None:
        self.path = path
        self._prefix = f"{fold(prefix)}-" if prefix else ""
        self._changing = Lock()
        self._now = self._load(None)
        self._reported = self._now.contents.accounts

    @property
    def key(self) -> bytes:
        """The secret that unknown accounts get their looks from."""
        return self._now.contents.key

    @property
    def knows_people(self) -> bool:
        """Whether there is an account of class human, so that only logins of that class are people.

        A revoked one counts: taking away a stolen login must not make people of all who have none.
        """
        return any(account.kind is UserClass.HUMAN for account in self.all())

    def all(self) -> tuple[Account, ...]:
        """Every account, also the revoked ones."""
        return tuple(self._now.contents.accounts.values())

    def get(self, name: str) -> Account | None:
        """The account of that name, with or without the server's prefix."""
        return self._now.names.get(self.bare(name))

    def active(self, name: str) -> Account | None:
        """The account of that name if it may log in."""
        account = self.get(name)
        return account if account and account.is_active else None

    def by_certificate(self, certificate: str) -> Account | None:
        """The account that lists this fingerprint and may log in."""
        return self._now.certificates.get(certificate.lower())

    def owner_of(self, nick: str) -> Account | None:
        """Whose nick it is: that of the account of the same name, or of the one that lists it; revoked or not."""
        return self._now.owners.get(self.bare(nick))

    def bare(self, name: str) -> str:
        """The form in which names compare: folded, without the server's prefix."""
        return fold(name).removeprefix(self._prefix)

    def add(self, account: Account) -> None:
        """Keep a new account; raises NameTaken when its name, a nick or a certificate is somebody's."""

        def checked(current: AccountSnapshot) -> Account:
            self._check_free(account, current)
            return account

        self._put(checked)

    def vouched(self, subject: Subject, name: str, kind: UserClass) -> Account:
        """The account of somebody an issuer vouches for: made under this name at first, and the same ever after.

        Raises AccountRefused when the name is somebody else's or cannot be one, and for who was revoked.
        """
        known = self._now.subjects.get(subject)
        if known is not None and known.is_active and known.kind is kind:
            return known

        def brought_up(current: AccountSnapshot) -> Account:
            account = current.subjects.get(subject)
            if account is None:
                account = new_account(name, kind, subject=subject)
                self._check_free(account, current)
                if self.bare(name) != fold(name):
                    raise AccountRefused("the prefix of the server is no part of a name")
            if not account.is_active:
                raise Revoked(account.name)
            return replace(account, kind=kind, always_on=kind is UserClass.HUMAN)

        return self._put(brought_up)

    def set_password(self, name: str, verifier: PasswordVerifier) -> Account:
        """Give it another password; a revoked account may log in again with it."""
        return self._alter(name, lambda account: replace(account, verifier=verifier, revoked=None))

    def set_class(self, name: str, kind: UserClass) -> Account:
        """Make it an account of another kind of program; a person's account stays one."""

        def with_class(account: Account) -> Account:
            if UserClass.HUMAN in (account.kind, kind):
                raise AccountRefused(
                    f"{account.name} is of class {account.kind}: nobody becomes a person, or stops to be one"
                )
            if account.via is not None and kind is not UserClass.BOT:
                raise AccountRefused(f"{account.name} logs in for people, which only a bot may")
            return replace(account, kind=kind)

        return self._alter(name, with_class)

    def add_token(self, name: str, label: str) -> str:
        """Make a token, in place of the one with the same label; it is returned this once and never again."""
        token = new_token()
        kept = Token(token_label(label), token_digest(token))

        def with_token(account: Account) -> Account:
            if not account.is_active:
                raise AccountRefused(f"{account.name} is revoked; a new password lets it in again")
            return replace(account, tokens=(*(old for old in account.tokens if old.label != label), kept))

        self._alter(name, with_token)
        return token

    def add_certificate(self, name: str, certificate: str) -> Account:
        """Let it log in with this certificate too; raises NameTaken when that is somebody's already."""
        added = fingerprint(certificate)

        def with_certificate(current: AccountSnapshot) -> Account:
            account, owner = current.names.get(self.bare(name)), current.certificates.get(added)
            if account is None:
                raise NoSuchAccount(name)
            if not account.is_active:
                raise AccountRefused(f"{account.name} is revoked; a new password lets it in again")
            if owner is not None and owner.name != account.name:
                raise NameTaken("that certificate", owner.name)
            return replace(account, certificates=tuple(dict.fromkeys((*account.certificates, added))))

        return self._put(with_certificate)

    def revoke(self, name: str) -> Account:
        """Take away every way to log in; name and nicks stay with the account, so that nobody else can take them."""
        return self._alter(
            name,
            lambda account: replace(
                account,
                revoked=account.revoked or now(),
                revocations=account.revocations + 1,
                verifier=None,
                certificates=(),
                tokens=(),
            ),
        )

    def catch_up(self) -> None:
        """Take up what was written elsewhere meanwhile; one stat when nothing was. The next refresh tells of it.

        Raises AccountsError when the file has become unreadable; what was known then still holds.
        """
        # Not while a thread of ours writes: it would have to be waited for, and takes it up itself.
        if not self._changing.acquire(blocking=False):
            return
        try:
            if disk.stamp(self.path) != self._now.stamp:
                self._now = self._load(self._now)
        except OSError as error:
            raise AccountsError(f"cannot read {self.path}: {error.strerror}") from error
        finally:
            self._changing.release()

    def refresh(self) -> Changes:
        """Catch up, and say what was changed, here or elsewhere, since the last refresh."""
        self.catch_up()
        before, after = self._reported, self._now.contents.accounts
        if before is after:
            return _NOTHING
        self._reported = after
        names = {**before, **after}
        changed = {name for name in names if before.get(name) != after.get(name)}
        revoked = {name for name in changed if _was_revoked(before.get(name), after.get(name))}
        return Changes(
            frozenset(names[name].name for name in changed - revoked), frozenset(names[name].name for name in revoked)
        )

    def _alter(self, name: str, change: Callable[[Account], Account]) -> Account:
        def altered(current: AccountSnapshot) -> Account:
            account = current.names.get(self.bare(name))
            if account is None:
                raise NoSuchAccount(name)
            return change(account)

        return self._put(altered)

    def _put(self, make: Callable[[AccountSnapshot], Account]) -> Account:
        """Read, change and write as one step that no other writer can come between."""
        try:
            with self._changing, disk.writing(self.path):
                current = self._load(self._now)
                account = make(current)
                accounts = {**current.contents.accounts, fold(account.name): account}
                disk.replace(self.path, account_file.dump(AccountFileContents(accounts, current.contents.key)))
                self._now = self._load(current)
                return account
        except OSError as error:
            raise AccountsError(f"cannot write {self.path}: {error.strerror}") from error

    def _check_free(self, account: Account, current: AccountSnapshot) -> None:
        for name in (account.name, *account.nicks):
            owner = current.owners.get(self.bare(name))
            if owner:
                raise NameTaken(name, owner.name)
        for certificate in account.certificates:
            owner = current.certificates.get(fingerprint(certificate))
            if owner:
                raise NameTaken("that certificate", owner.name)

    def _load(self, known: AccountSnapshot | None) -> AccountSnapshot:
        try:
            found = disk.read(self.path)
        except OSError as error:
            raise AccountsError(f"cannot read {self.path}: {error.strerror}") from error
        if found is None:
            if known and known.contents.accounts:
                raise AccountsError(f"{self.path} is gone; put it back from a backup, or restart without accounts")
            return known or self._indexed(account_file.empty(), None)
        data, stamp = found
        try:
            return self._indexed(account_file.parse(data), stamp)
        except UnreadableJson as error:
            raise AccountsError(
                f"{self.path} cannot be read: {error}\nNothing was changed. Put it right or back from a backup."
            ) from error

    def _indexed(self, contents: AccountFileContents, stamp: disk.FileStamp | None) -> AccountSnapshot:
        accounts = contents.accounts.values()
        names = {self.bare(account.name): account for account in accounts}
        listed = {self.bare(nick): account for account in accounts for nick in account.nicks}
        certificates = {text: account for account in accounts if account.is_active for text in account.certificates}
        subjects = {account.subject: account for account in accounts if account.subject}
        return AccountSnapshot(contents, names, listed | names, certificates, subjects, stamp)


_NOTHING = Changes(frozenset(), frozenset())


def _was_revoked(before: Account | None, after: Account | None) -> bool:
    """May it no longer log in, or might it not for a moment?"""
    if after is None or not after.is_active:
        return True
    return before is not None and before.revocations != after.revocations
