"""An account, and what its parts may look like."""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime

from culture.protocol.names import reserved
from culture.protocol.vocabulary import UserClass
from culture.server.auth.password import PasswordVerifier
from culture.server.errors import StartError


class AccountsError(StartError):
    """The file of accounts cannot be used; the message says what to do about it."""


class AccountRefused(Exception):
    """An account cannot be made or changed as asked; the message is for people."""


class NoSuchAccount(AccountRefused):
    """Nobody has an account of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no account {name}")


class Revoked(AccountRefused):
    """The account may not log in any longer."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the account {name} is revoked")


class NameTaken(AccountRefused):
    """The name or nick belongs to another account."""

    def __init__(self, name: str, owner: str) -> None:
        super().__init__(f"{name} belongs to the account {owner}")


LONGEST_NAME = 32

_NAME = re.compile(r"[A-Za-z0-9\[\]\\`_^{}|][A-Za-z0-9\[\]\\`_^{}|-]*")
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Token:
    """A random secret in place of the password; only its SHA-256 is kept."""

    label: str
    digest: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom the tokens of an issuer speak of, by the name that the issuer never gives to another (``sub``)."""

    issuer: str
    name: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody who can log in; times are ISO 8601 in UTC."""

    name: str
    kind: UserClass
    always_on: bool
    created: str
    verifier: PasswordVerifier | None = field(default=None, repr=False)
    certificates: tuple[str, ...] = ()
    nicks: tuple[str, ...] = ()
    tokens: tuple[Token, ...] = ()
    subject: Subject | None = None
    """Whose account it is, where an issuer's tokens log in to it."""
    via: str | None = None
    """Where people are when this program logs in for them, as WHOIS names it; None: it speaks for itself alone."""
    user: str | None = None
    """The user of this machine whose own clients need no login for it: the kernel says whose they are."""
    revoked: str | None = None
    revocations: int = 0
    """How often; who was revoked and let in again at once is still to be thrown out once."""

    @property
    def is_active(self) -> bool:
        """Whether it may log in at all."""
        return self.revoked is None


def new_account(
    name: str,
    kind: UserClass,
    *,
    verifier: PasswordVerifier | None = None,
    certificates: tuple[str, ...] = (),
    nicks: tuple[str, ...] = (),
    always_on: bool | None = None,
    subject: Subject | None = None,
    via: str | None = None,
    user: str | None = None,
) -> Account:
    """A checked account made now; people are always on unless said otherwise. Raises AccountRefused."""
    return Account(
        name=account_name(name),
        kind=kind,
        always_on=kind is UserClass.HUMAN if always_on is None else always_on,
        created=now(),
        verifier=verifier,
        certificates=tuple(dict.fromkeys(map(fingerprint, certificates))),
        nicks=tuple(dict.fromkeys(map(account_name, nicks))),
        subject=subject,
        via=None if via is None else via_word(via, kind),
        user=None if user is None else user_word(user),
    )


def account_name(name: str) -> str:
    """Refuse what cannot be a new account, nor a nick of one."""
    if reserved(stored_account_name(name)):
        raise AccountRefused(f"{name} is reserved: it would be taken for something else")
    return name


def stored_account_name(name: str) -> str:
    """Refuse what cannot be the name of an account in a file; ``0`` and ``*`` mean "no account" on IRC.

    A name that was reserved later stays readable, so that its file is. Nobody can take it as a nick.
    """
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name) or name == "0":
        raise AccountRefused(f"{name!r} cannot be a name: up to {LONGEST_NAME} letters, digits, - and _, no spaces")
    return name


def fingerprint(text: str) -> str:
    """The SHA-256 fingerprint of a certificate as it is kept: hexadecimal, lower case, no colons."""
    plain = text.replace(":", "").strip().lower()
    if not _FINGERPRINT.fullmatch(plain):
        raise AccountRefused(f"{text!r} is not the SHA-256 fingerprint of a certificate: 64 hexadecimal digits")
    return plain


def token_label(text: str) -> str:
    """Refuse what cannot name a token."""
    if not _LABEL.fullmatch(text):
        raise AccountRefused(f"{text!r} cannot name a token: letters, digits, dot, - and _")
    return text


def via_word(text: str, kind: UserClass) -> str:
    """Refuse what cannot say where people are, and let nobody but a program act for others."""
    if not _LABEL.fullmatch(text):
        raise AccountRefused(f"{text!r} cannot say where people are: a word of letters, digits, dot, - and _")
    if kind is not UserClass.BOT:
        raise AccountRefused("only an account of class bot may act for people")
    return text


def user_word(text: str) -> str:
    """Refuse what cannot be a user of this machine; whether there is one is seen when somebody comes."""
    if not text.isprintable() or not text or " " in text:
        raise AccountRefused(f"{text!r} cannot be a user of this machine: a login name, or the number of one")
    return text


def now() -> str:
    """The time as accounts have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
