"""Accounts that are cheap to make: hashed a few times only, as the tests are not about that."""

from collections.abc import Callable
from pathlib import Path

import pytest

from culture.protocol.vocabulary import UserClass
from culture.server.auth import password as verifiers
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import Account, new_account
from culture.server.auth.password import PasswordVerifier

ROUNDS = 4096

Make = Callable[..., Account]


@pytest.fixture(autouse=True)
def cheap_fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown accounts are to look like those made here."""
    monkeypatch.setattr(verifiers, "ITERATIONS", ROUNDS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "accounts.json"


@pytest.fixture
def store(path: Path) -> AccountStore:
    """The accounts of the server spark; nobody is in it."""
    return AccountStore(path, "spark")


@pytest.fixture
def make(store: AccountStore) -> Make:
    """``make("ori", "hunter2", nicks=(...,))``: an account in the store."""

    def added(name: str, password: str | None = None, kind: str = "human", **more: object) -> Account:
        verifier = PasswordVerifier.of(password, iterations=ROUNDS) if password else None
        account = new_account(name, UserClass(kind), verifier=verifier, **more)  # type: ignore[arg-type]
        store.add(account)
        return account

    return added
