"""Checking a password or token; nobody can tell by the time it takes whether there is such an account."""

from collections.abc import Callable
from dataclasses import dataclass, field

from culture.config.secret_compare import same_secret
from culture.protocol.vocabulary import LoginProof, UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import Account
from culture.server.auth.password import PasswordVerifier, UnfitPassword, prepare, token_digest


@dataclass(frozen=True, slots=True)
class Done:
    """Somebody has proved to be this account, or to be one that may act for it."""

    account: str
    proof: LoginProof
    """The credential that was checked."""
    by: str | None = None
    """The account of the program that acts for it."""


@dataclass(frozen=True, slots=True)
class LoginFailed:
    """The login failed; the reason is for the log, a client is told only that it failed."""

    reason: str
    challenge: bytes = b""
    """Where the mechanism has the client told before it fails: what to send; its answer ends the exchange."""


@dataclass(frozen=True, slots=True)
class CredentialCheck:
    """What takes long (0.2 s): call ``run`` in a thread, it touches nothing that is not made for that."""

    run: Callable[[], Done | LoginFailed] = field(repr=False)
    asks_elsewhere: bool = False
    """May it have to wait for another machine?"""


WRONG = LoginFailed("wrong account or password")
NOT_FOR = LoginFailed("it may not act for that account")


def check_password(store: AccountStore, name: str, password: str) -> CredentialCheck | LoginFailed:
    """Prepare the check of a password, or of a token in its place, for SASL PLAIN and ``PASS account:password``."""
    account = store.active(name)
    verifier = verifier_of(store, name)
    try:
        prepared = prepare(password)
    except UnfitPassword as unfit:
        return LoginFailed(str(unfit))

    def run() -> Done | LoginFailed:
        if account and _has_token(account, password):
            return Done(account.name, LoginProof.TOKEN)
        fits = verifier.fits(prepared)
        return Done(account.name, LoginProof.PASSWORD) if fits and account else WRONG

    return CredentialCheck(run)


def check_acting(store: AccountStore, name: str, password: str, person: str) -> CredentialCheck | Done | LoginFailed:
    """The same for a program that acts for a person; one with a token, which nobody can guess, is known at once."""
    step = check_password(store, name, password)
    if not isinstance(step, CredentialCheck):
        return step
    by, target = store.active(name), store.active(person)
    if by is None or target is None or not may_act(by, target):

        def refused() -> Done | LoginFailed:
            return NOT_FOR if isinstance(step.run(), Done) else WRONG

        return CredentialCheck(refused)
    done = Done(target.name, LoginProof.BEHALF, by.name)
    if _has_token(by, password):
        return done

    def run() -> Done | LoginFailed:
        outcome = step.run()
        return done if isinstance(outcome, Done) else outcome

    return CredentialCheck(run)


def may_act(by: Account, target: Account) -> bool:
    """Whether an account may log in for another: only some programs, and only for people."""
    return by.is_active and by.via is not None and target.is_active and target.kind is UserClass.HUMAN


def verifier_of(store: AccountStore, name: str) -> PasswordVerifier:
    """The verifier of an account that may log in with a password, else one that nothing fits."""
    account = store.active(name)
    if account and account.verifier:
        return account.verifier
    return PasswordVerifier.fake(store.key, store.bare(name))


def _has_token(account: Account, token: str) -> bool:
    digest = token_digest(token)
    # All of them, whatever the first ones say.
    return sum(same_secret(digest, kept.digest) for kept in account.tokens) > 0
