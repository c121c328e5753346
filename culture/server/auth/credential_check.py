"""Checks of passwords and tokens that take equally long whether the account exists or not."""

from collections.abc import Callable
from dataclasses import dataclass, field

from culture.lib.secret_compare import same_secret
from culture.protocol.vocabulary import LoginProof, UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import Account
from culture.server.auth.password import PasswordVerifier, UnfitPassword, prepare, token_digest


@dataclass(frozen=True, slots=True)
class Done:
    """A successful login: the account, and the program that logged in for it, if any."""

    account: str
    proof: LoginProof
    """The kind of credential that was checked."""
    by: str | None = None
    """The account of the program that acts for the person."""


@dataclass(frozen=True, slots=True)
class LoginFailed:
    """A failed login; ``reason`` is for the log, the client is only told that it failed."""

    reason: str
    challenge: bytes = b""
    """For mechanisms that send the reason first: what to send; the client's answer ends it."""


@dataclass(frozen=True, slots=True)
class CredentialCheck:
    """A slow check (0.2 s) of a password or token: call ``run`` in a thread, which is safe."""

    run: Callable[[], Done | LoginFailed] = field(repr=False)
    asks_elsewhere: bool = False
    """Whether it may have to wait for another machine."""


WRONG = LoginFailed("wrong account or password")
NOT_FOR = LoginFailed("it may not act for that account")


def check_password(store: AccountStore, name: str, password: str) -> CredentialCheck | LoginFailed:
    """Return the slow check of an account's password or token, given as ``password``.

    Returns a LoginFailed if the text cannot be a password. The check is for SASL PLAIN and ``PASS account:password``.
    """
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
    """Return the check for the program ``name``, which logs in on behalf of ``person``.

    A program that gives a valid token needs no check: the login is returned at once. A text that cannot be a password
    gives a LoginFailed.
    """
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
    """Return whether the account ``by`` may log in on behalf of ``target``.

    Only bots with a ``via`` word may, and only on behalf of people.
    """
    return by.is_active and by.via is not None and target.is_active and target.kind is UserClass.HUMAN


def verifier_of(store: AccountStore, name: str) -> PasswordVerifier:
    """Return the password verifier of an account, or a fake one, which no password fits.

    An unknown account, a revoked one and one without a password have a fake one.
    """
    account = store.active(name)
    if account and account.verifier:
        return account.verifier
    return PasswordVerifier.fake(store.key, store.bare(name))


def _has_token(account: Account, token: str) -> bool:
    digest = token_digest(token)
    # All are compared, so that the time does not tell which one fits.
    return sum(same_secret(digest, each.digest) for each in account.tokens) > 0
