"""All accounts of a server: one file, shared by the command line and running servers."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from culture.lib.files import FileStamp, file_stamp, read_private, replace_file, write_lock
from culture.protocol.names import fold
from culture.protocol.vocabulary import UserClass
from culture.runtime import REAL, Runtime
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
    """Names of the accounts that are new or changed since an earlier check, and of revoked ones."""

    changed: frozenset[str]
    revoked: frozenset[str]


class AccountSnapshot(NamedTuple):
    """One version of the accounts file with its indexes; a new version replaces the snapshot."""

    contents: AccountFileContents
    names: Mapping[str, Account]
    owners: Mapping[str, Account]
    certificates: Mapping[str, Account]
    subjects: Mapping[Subject, Account]
    stamp: FileStamp | None


class AccountStore:
    """The accounts: reads come from memory, and every change is on disk when the call returns.

    A change waits for the disk and other writers: run it in a thread, not on the event loop. ``prefix`` is the server's
    short name if nicks begin with it: ``ori`` and ``spark-ori`` are then one name.
    """

    def __init__(self, path: Path, prefix: str = "", *, runtime: Runtime = REAL) -> None:
        self.path = path
        self._runtime = runtime
        self._prefix = f"{fold(prefix)}-" if prefix else ""
        self._changing = runtime.lock()
        self._now = self._load(None)
        self._reported = self._now.contents.accounts

    @property
    def key(self) -> bytes:
        """Return the secret from which the fake verifiers of unknown accounts are derived."""
        return self._now.contents.key

    @property
    def knows_people(self) -> bool:
        """Return whether an account of class human exists.

        If so, only logged-in users count as people. A revoked account counts: revoking a stolen login must not turn
        users without an account into people.
        """
        return any(account.kind is UserClass.HUMAN for account in self.all())

    def all(self) -> tuple[Account, ...]:
        """Return every account, also revoked ones."""
        return tuple(self._now.contents.accounts.values())

    def get(self, name: str) -> Account | None:
        """Return the account with this name, with or without the server's prefix.

        None if none has it.
        """
        return self._now.names.get(self.bare(name))

    def active(self, name: str) -> Account | None:
        """Return the account with this name; None if there is none or it is revoked."""
        account = self.get(name)
        return account if account and account.is_active else None

    def by_certificate(self, certificate: str) -> Account | None:
        """Return the active account that lists this certificate fingerprint; None if none does."""
        return self._now.certificates.get(certificate.lower())

    def owner_of(self, nick: str) -> Account | None:
        """Return the account that owns a nick, as its name or one of its nicks; None if no account does.

        A revoked account still owns its nicks.
        """
        return self._now.owners.get(self.bare(nick))

    def bare(self, name: str) -> str:
        """Return an account name or nick as it is compared: folded, without the server's prefix."""
        return fold(name).removeprefix(self._prefix)

    def add(self, account: Account) -> None:
        """Add a new account; raises NameTaken if its name, a nick or a certificate is in use."""

        def checked(current: AccountSnapshot) -> Account:
            self._check_free(account, current)
            return account

        self._put(checked)

    def vouched(self, subject: Subject, name: str, kind: UserClass) -> Account:
        """Return the account of the OpenID user ``subject``; it is made at the user's first login.

        ``name`` is the name of a new account; ``kind``: the account's class, which an existing one gets as well.
        Raises AccountRefused if the name is in use or invalid, and Revoked for a revoked account.
        """
        account = self._now.subjects.get(subject)
        if account is not None and account.is_active and account.kind is kind:
            return account

        def updated(current: AccountSnapshot) -> Account:
            account = current.subjects.get(subject)
            if account is None:
                account = new_account(name, kind, subject=subject, runtime=self._runtime)
                self._check_free(account, current)
                if self.bare(name) != fold(name):
                    raise AccountRefused("the prefix of the server is no part of a name")
            if not account.is_active:
                raise Revoked(account.name)
            return replace(account, kind=kind, always_on=kind is UserClass.HUMAN)

        return self._put(updated)

    def set_password(self, name: str, verifier: PasswordVerifier) -> Account:
        """Set an account's password and return the account; a revoked one may log in again.

        ``verifier``: what is stored in place of the password.
        """
        return self._alter(name, lambda account: replace(account, verifier=verifier, revoked=None))

    def set_class(self, name: str, kind: UserClass) -> Account:
        """Change the class of a program's account, and return the account.

        Raises AccountRefused if the old or the new class is human.
        """

        def with_class(account: Account) -> Account:
            if UserClass.HUMAN in (account.kind, kind):
                raise AccountRefused(
                    f"{account.name} is of class {account.kind}: the class human cannot be given or taken"
                )
            if account.via is not None and kind is not UserClass.BOT:
                raise AccountRefused(f"{account.name} logs in for people, which only a bot may")
            return replace(account, kind=kind)

        return self._alter(name, with_class)

    def add_token(self, name: str, label: str) -> str:
        """Make a token for an account and return it; it replaces a token with the same label.

        Only the token's digest is stored.
        """
        token = new_token(runtime=self._runtime)
        stored = Token(token_label(label), token_digest(token))

        def with_token(account: Account) -> Account:
            if not account.is_active:
                raise AccountRefused(f"{account.name} is revoked; a new password lets it in again")
            return replace(account, tokens=(*(old for old in account.tokens if old.label != label), stored))

        self._alter(name, with_token)
        return token

    def add_certificate(self, name: str, certificate: str) -> Account:
        """Add the fingerprint of a certificate that the account can log in with; return the account.

        Raises NameTaken if another account has this certificate.
        """
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
        """Remove all credentials of an account and return it; its name and nicks stay reserved."""
        return self._alter(
            name,
            lambda account: replace(
                account,
                revoked=account.revoked or now(runtime=self._runtime),
                revocations=account.revocations + 1,
                verifier=None,
                certificates=(),
                tokens=(),
            ),
        )

    def catch_up(self) -> None:
        """Load the accounts file again if another process changed it.

        The next call of ``refresh`` returns these changes. Raises AccountsError if the file has become unreadable; the
        accounts in memory then stay in force.
        """
        # Not while a thread of ours writes: it would have to be waited for, and loads the file itself.
        if not self._changing.acquire(blocking=False):
            return
        try:
            if file_stamp(self.path) != self._now.stamp:
                self._now = self._load(self._now)
        except OSError as error:
            raise AccountsError(f"cannot read {self.path}: {error.strerror}") from error
        finally:
            self._changing.release()

    def refresh(self) -> Changes:
        """Load changes by other processes; return all changes since the last ``refresh``."""
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
        """Read the file, store the account that ``make`` returns, and return that account.

        A lock keeps other writers out from reading to writing.
        """
        try:
            with self._changing, write_lock(self.path, runtime=self._runtime):
                current = self._load(self._now)
                account = make(current)
                accounts = {**current.contents.accounts, fold(account.name): account}
                written = account_file.dump(AccountFileContents(accounts, current.contents.key))
                replace_file(self.path, written, runtime=self._runtime)
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

    def _load(self, current: AccountSnapshot | None) -> AccountSnapshot:
        try:
            file = read_private(self.path)
        except OSError as error:
            raise AccountsError(f"cannot read {self.path}: {error.strerror}") from error
        if file is None:
            if current and current.contents.accounts:
                raise AccountsError(f"{self.path} is gone; put it back from a backup, or restart without accounts")
            return current or self._indexed(account_file.empty(runtime=self._runtime), None)
        data, stamp = file
        try:
            return self._indexed(account_file.parse(data, runtime=self._runtime), stamp)
        except UnreadableJson as error:
            raise AccountsError(
                f"{self.path} cannot be read: {error}\nNothing was changed. Put it right or back from a backup."
            ) from error

    def _indexed(self, contents: AccountFileContents, stamp: FileStamp | None) -> AccountSnapshot:
        accounts = contents.accounts.values()
        names = {self.bare(account.name): account for account in accounts}
        listed = {self.bare(nick): account for account in accounts for nick in account.nicks}
        certificates = {text: account for account in accounts if account.is_active for text in account.certificates}
        subjects = {account.subject: account for account in accounts if account.subject}
        return AccountSnapshot(contents, names, listed | names, certificates, subjects, stamp)


_NOTHING = Changes(frozenset(), frozenset())


def _was_revoked(before: Account | None, after: Account | None) -> bool:
    """Return whether an account is revoked, or was revoked for a while between two snapshots.

    ``before`` and ``after`` are the account in the two; None: not in the file. An account without ``after`` counts as
    revoked.
    """
    if after is None or not after.is_active:
        return True
    return before is not None and before.revocations != after.revocations
