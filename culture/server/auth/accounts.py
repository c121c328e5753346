"""An account, and the rules for its parts: name, fingerprints, token labels."""

import re
from dataclasses import dataclass, field

from culture.protocol.names import reserved
from culture.protocol.vocabulary import UserClass
from culture.runtime import REAL, Runtime
from culture.server.auth.password import PasswordVerifier
from culture.server.errors import StartError


class AccountsError(StartError):
    """The accounts file cannot be used; the exception's text tells people what to do."""


class AccountRefused(Exception):
    """An account cannot be made or changed as requested; the exception's text is for people."""


class NoSuchAccount(AccountRefused):
    """No account has the given name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no account {name}")


class Revoked(AccountRefused):
    """The account was revoked, and nobody can log in to it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the account {name} is revoked")


class NameTaken(AccountRefused):
    """The name, nick or certificate belongs to another account."""

    def __init__(self, name: str, owner: str) -> None:
        super().__init__(f"{name} belongs to the account {owner}")


LONGEST_NAME = 32

_NAME = re.compile(r"[A-Za-z0-9\[\]\\`_^{}|][A-Za-z0-9\[\]\\`_^{}|-]*")
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Token:
    """A random secret that a program logs in with; only its SHA-256 is stored."""

    label: str
    digest: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Subject:
    """A user of an OpenID issuer, by the issuer's permanent id (``sub``)."""

    issuer: str
    name: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Account:
    """An account that can log in; times are ISO 8601 in UTC."""

    name: str
    kind: UserClass
    always_on: bool
    created: str
    verifier: PasswordVerifier | None = field(default=None, repr=False)
    certificates: tuple[str, ...] = ()
    nicks: tuple[str, ...] = ()
    tokens: tuple[Token, ...] = ()
    subject: Subject | None = None
    """The issuer's user whose tokens log in to this account."""
    via: str | None = None
    """For a program that logs in for people: where they are, as WHOIS says; else None."""
    user: str | None = None
    """The local user whose own programs need no login for this account."""
    revoked: str | None = None
    revocations: int = 0
    """Number of revocations: a revoked and at once restored account is still disconnected once."""

    @property
    def is_active(self) -> bool:
        """Return whether the account may log in: it is not revoked."""
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
    runtime: Runtime = REAL,
) -> Account:
    """Return a new account after checking its parts; raises AccountRefused for an invalid one.

    ``verifier``: of its password; ``certificates``: fingerprints to log in with; ``nicks``: those it owns besides its
    name; ``always_on``: whether its user stays after the last session, None: True for people, False for programs;
    ``subject``: the OpenID user it belongs to; ``via``: where the people come from that a bot logs in; ``user``: the
    local user who needs no password.
    """
    return Account(
        name=account_name(name),
        kind=kind,
        always_on=kind is UserClass.HUMAN if always_on is None else always_on,
        created=now(runtime=runtime),
        verifier=verifier,
        certificates=tuple(dict.fromkeys(map(fingerprint, certificates))),
        nicks=tuple(dict.fromkeys(map(account_name, nicks))),
        subject=subject,
        via=None if via is None else via_word(via, kind),
        user=None if user is None else user_word(user),
    )


def account_name(name: str) -> str:
    """Return the name unchanged if a new account or nick may have it; else raise AccountRefused."""
    if reserved(stored_account_name(name)):
        raise AccountRefused(f"{name} is reserved: people would mistake it for something else")
    return name


def stored_account_name(name: str) -> str:
    """Return the name unchanged if a stored account may have it; else raise AccountRefused."""
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name) or name == "0":
        raise AccountRefused(f"{name!r} cannot be a name: up to {LONGEST_NAME} letters, digits, - and _, no spaces")
    return name


def fingerprint(text: str) -> str:
    """Normalise a SHA-256 certificate fingerprint to the stored form: lower-case hex, no colons."""
    plain = text.replace(":", "").strip().lower()
    if not _FINGERPRINT.fullmatch(plain):
        raise AccountRefused(f"{text!r} is not the SHA-256 fingerprint of a certificate: 64 hexadecimal digits")
    return plain


def token_label(text: str) -> str:
    """Return the text unchanged if it can be the label of a token; else raise AccountRefused."""
    if not _LABEL.fullmatch(text):
        raise AccountRefused(f"{text!r} cannot name a token: letters, digits, dot, - and _")
    return text


def via_word(text: str, kind: UserClass) -> str:
    """Return ``text`` if it is fit as ``via``: where the people that a bot logs in come from.

    Raises AccountRefused for an invalid word, and if ``kind``, the class of the account, is not bot.
    """
    if not _LABEL.fullmatch(text):
        raise AccountRefused(f"{text!r} cannot say where people are: a word of letters, digits, dot, - and _")
    if kind is not UserClass.BOT:
        raise AccountRefused("only an account of class bot may act for people")
    return text


def user_word(text: str) -> str:
    """Return the text if it can name a user of this machine, who need not exist yet.

    Raises AccountRefused otherwise.
    """
    if not text.isprintable() or not text or " " in text:
        raise AccountRefused(f"{text!r} cannot be a user of this machine: a login name, or the number of one")
    return text


def now(*, runtime: Runtime = REAL) -> str:
    """Return the present time as the accounts file writes it: ISO 8601 in UTC."""
    return runtime.utc().strftime("%Y-%m-%dT%H:%M:%SZ")
