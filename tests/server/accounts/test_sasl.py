"""The SASL mechanisms: RFC 4616 (PLAIN), RFC 5802 and 7677 (SCRAM-SHA-256), RFC 4422 (EXTERNAL)."""

import base64
import hashlib
import hmac
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from culture.protocol.vocabulary import LoginProof, UserClass
from culture.runtime import Runtime
from culture.server.auth import password as verifiers
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import Account, new_account
from culture.server.auth.credential_check import CredentialCheck, Done, LoginFailed, check_password
from culture.server.auth.password import ITERATIONS, PasswordVerifier
from culture.server.auth.sasl import (
    Challenge,
    Exchange,
    ExternalExchange,
    PlainExchange,
    SaslMechanism,
    ScramExchange,
    Step,
    begin,
    offered,
)
from tests.server.accounts.conftest import Make

CERTIFICATE = "ab" * 32
PRINTABLE = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=30)
ANY_STORE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def finished(step: Step) -> Step:
    """The step, its long part done."""
    return step.run() if isinstance(step, CredentialCheck) else step


def plain(store: AccountStore, *fields: str) -> Step:
    return finished(PlainExchange(store).step("\0".join(fields).encode()))


class ScramClient:
    """The other side of SCRAM, written from RFC 5802 §3 on its own."""

    def __init__(self, name: str, password: str, header: str = "n,,") -> None:
        self.name, self.password, self.header = name, password, header
        self.salt = b""

    def login(self, exchange: Exchange) -> Step:
        step = exchange.step(f"{self.header}{self.bare}".encode())
        if not isinstance(step, Challenge):
            return step
        step = exchange.step(self.final(step.data.decode()))
        if not isinstance(step, Challenge):
            return step
        assert step.data == b"v=" + base64.b64encode(self.expected)
        return exchange.step(b"")

    @property
    def bare(self) -> str:
        return f"n={self.name},r=fyko"

    def final(self, server_first: str, nonce: str = "") -> bytes:
        given, salt, iterations = (part[2:] for part in server_first.split(","))
        self.salt = base64.b64decode(salt)
        salted = hashlib.pbkdf2_hmac("sha256", self.password.encode(), self.salt, int(iterations))
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        without_proof = f"c={base64.b64encode(self.header.encode()).decode()},r={nonce or given}"
        message = f"{self.bare},{server_first},{without_proof}".encode()
        signature = hmac.digest(hashlib.sha256(client_key).digest(), message, "sha256")
        self.expected = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), message, "sha256")
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()


class GivenNonce(Runtime):
    """A runtime whose every token is the nonce of the RFC's example."""

    def __init__(self) -> None:
        self.token_urlsafe = lambda _size: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"


def test_scram_says_what_the_rfc_says(store: AccountStore) -> None:
    """RFC 7677 §3: user ``user``, password ``pencil``, the salt and nonces given there."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    store.add(new_account("user", UserClass.HUMAN, verifier=PasswordVerifier.of("pencil", salt=salt, iterations=4096)))
    exchange = ScramExchange(store, runtime=GivenNonce())
    first = exchange.step(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert first == Challenge(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    final = exchange.step(f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode())
    assert final == Challenge(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    assert exchange.step(b"") == Done("user", LoginProof.SCRAM)


@pytest.mark.parametrize("name", ["ori", "ORI", "spark-ori", "Spark-Ori"])
def test_the_right_password_logs_in(store: AccountStore, make: Make, name: str) -> None:
    make("ori", "hunter2")
    assert plain(store, "", name, "hunter2") == Done("ori", LoginProof.PASSWORD)
    assert plain(store, name, name, "hunter2") == Done("ori", LoginProof.PASSWORD)
    assert ScramClient(name, "hunter2").login(ScramExchange(store)) == Done("ori", LoginProof.SCRAM)
    assert ScramClient(name, "hunter2", f"y,a={name},").login(ScramExchange(store)) == Done("ori", LoginProof.SCRAM)


@pytest.mark.fault("C2")
@pytest.mark.parametrize("password", ["", "hunter", "hunter22", "Hunter2", "hunter2\0", "\0", "x" * 5000, "\x07"])
def test_no_other_password_does(store: AccountStore, make: Make, password: str) -> None:
    """C2: an empty one neither, with an account that has a password or has none."""
    make("ori", "hunter2")
    make("robot")
    for name in ("ori", "robot", "nobody", ""):
        assert isinstance(plain(store, "", name, password), LoginFailed)
        assert isinstance(finished(check_password(store, name, password)), LoginFailed)
        if "\0" not in password:  # HMAC fills its key with NUL, so that a client may as well add some
            assert isinstance(ScramClient(name, password).login(ScramExchange(store)), LoginFailed)


def test_nobody_acts_as_another(store: AccountStore, make: Make) -> None:
    make("ori", "hunter2")
    make("ada", "hunter3", certificates=(CERTIFICATE,))
    assert isinstance(plain(store, "ada", "ori", "hunter2"), LoginFailed)
    assert isinstance(ScramClient("ori", "hunter2", "n,a=ada,").login(ScramExchange(store)), LoginFailed)
    assert isinstance(ExternalExchange(store, CERTIFICATE).step(b"ori"), LoginFailed)


@pytest.mark.parametrize(
    ("typed", "set_as"), [("\u00e9t\u00e9", "e\u0301te\u0301"), ("a\u00a0b", "a b"), ("\u2168", "IX")]
)
def test_ways_to_type_the_same_password_are_one(store: AccountStore, make: Make, typed: str, set_as: str) -> None:
    """RFC 4013: the password is normalised before it is hashed."""
    make("ori", set_as)
    assert plain(store, "", "ori", typed) == Done("ori", LoginProof.PASSWORD)


def test_a_token_is_a_password_too(store: AccountStore, make: Make) -> None:
    make("robot", kind="agent")
    first, second = store.add_token("robot", "laptop"), store.add_token("robot", "desk")
    assert plain(store, "", "robot", first) == plain(store, "", "robot", second) == Done("robot", LoginProof.TOKEN)
    replaced = store.add_token("robot", "laptop")
    assert plain(store, "", "robot", replaced) == Done("robot", LoginProof.TOKEN)
    assert isinstance(plain(store, "", "robot", first), LoginFailed)
    make("other", "hunter2")
    assert isinstance(plain(store, "", "other", second), LoginFailed)


def test_a_certificate_logs_in(store: AccountStore, make: Make) -> None:
    make("ori", certificates=(CERTIFICATE.upper(),))
    for wanted in (b"", b"ori", b"spark-ori"):
        assert ExternalExchange(store, CERTIFICATE).step(wanted) == Done("ori", LoginProof.CERTIFICATE)
    for certificate in (None, "", "cd" * 32):
        assert isinstance(ExternalExchange(store, certificate).step(b""), LoginFailed)


def test_a_revoked_account_logs_in_by_no_way(store: AccountStore, make: Make) -> None:
    make("ori", "hunter2", certificates=(CERTIFICATE,))
    token = store.add_token("ori", "laptop")
    under_way = ScramExchange(store)
    client = ScramClient("ori", "hunter2")
    begun = under_way.step(f"n,,{client.bare}".encode())
    store.revoke("ori")
    assert isinstance(begun, Challenge)
    assert isinstance(under_way.step(client.final(begun.data.decode())), LoginFailed)
    assert isinstance(plain(store, "", "ori", "hunter2"), LoginFailed)
    assert isinstance(plain(store, "", "ori", token), LoginFailed)
    assert isinstance(ExternalExchange(store, CERTIFICATE).step(b""), LoginFailed)
    store.set_password("ori", PasswordVerifier.of("hunter3", iterations=4096))
    assert plain(store, "", "ori", "hunter3") == Done("ori", LoginProof.PASSWORD)
    assert isinstance(plain(store, "", "ori", token), LoginFailed)


def test_an_unknown_account_costs_and_says_the_same(
    store: AccountStore, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names cannot be probed: as many hashes of as many rounds, the same messages, a salt that stays the same."""
    rounds: list[int] = []
    make("ori", "hunter2")
    make("robot")
    real = hashlib.pbkdf2_hmac

    def counted(name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
        rounds.append(iterations)
        return real(name, password, salt, iterations)

    monkeypatch.setattr(verifiers.hashlib, "pbkdf2_hmac", counted)
    told = [plain(store, "", name, "wrong") for name in ("ori", "robot", "nobody")]
    assert told[0] == told[1] == told[2] and rounds == [4096] * 3
    salts = set()
    for name in ("nobody", "NOBODY", "spark-nobody", "nobody"):
        client = ScramClient(name, "wrong")
        assert client.login(ScramExchange(AccountStore(store.path, "spark"))) == told[0]
        salts.add(client.salt)
    other = ScramClient("somebody", "wrong")
    other.login(ScramExchange(store))
    assert len(salts) == 1 and other.salt not in salts and {len(salt) for salt in salts} == {16}


def test_new_passwords_are_hashed_often_enough() -> None:
    assert ITERATIONS >= 600_000 and PasswordVerifier.of("hunter2").iterations == ITERATIONS


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n",
        b"n,,",
        b"n,,n=ori",
        b"n,,r=abc,n=ori",
        b"n,,n=ori,r=",
        b"n,,n=,r=abc",
        b"n,,n=o=ri,r=abc",
        b"n,,m=x,n=ori,r=abc",
        b"p=tls-unique,,n=ori,r=abc",
        b"n,b=ori,n=ori,r=abc",
        b"n,,n=ori,r=a\xffb",
        b"n,,n=o\x00ri,r=abc",
        b"n,,n=ori,r=a\x7fb",
    ],
)
def test_a_wrong_first_message_fails(store: AccountStore, make: Make, message: bytes) -> None:
    make("ori", "hunter2")
    assert isinstance(ScramExchange(store).step(message), LoginFailed)


@pytest.mark.parametrize("change", ["binding", "nonce", "proof", "extension", "nothing", "again"])
def test_a_changed_last_message_fails(store: AccountStore, make: Make, change: str) -> None:
    make("ori", "hunter2")
    client, exchange = ScramClient("ori", "hunter2"), ScramExchange(store)
    first = exchange.step(f"n,,{client.bare}".encode())
    assert isinstance(first, Challenge)
    message = client.final(first.data.decode())
    changed = {
        "binding": message.replace(b"c=biws", b"c=eSws"),
        "nonce": message.replace(b"r=fyko", b"r=fykp"),
        "proof": message[:-8] + b"AAAAAAA=",
        "extension": message.replace(b",p=", b",x=1,p="),
        "nothing": b"",
        "again": f"n,,{client.bare}".encode(),
    }[change]
    assert isinstance(exchange.step(changed), LoginFailed)
    assert isinstance(exchange.step(message), LoginFailed)


@pytest.mark.parametrize("change", ["binding", "nonce"])
def test_proof_of_another_exchange_is_refused(store: AccountStore, make: Make, change: str) -> None:
    """The client proves that it knows the password, but signs another header (RFC 5802 §6), or another nonce."""
    make("ori", "hunter2")
    client, exchange = ScramClient("ori", "hunter2"), ScramExchange(store)
    first = exchange.step(f"n,,{client.bare}".encode())
    assert isinstance(first, Challenge)
    if change == "binding":
        client.header = "y,,"
        message = client.final(first.data.decode())
    else:
        message = client.final(first.data.decode(), nonce="fykoelse")
    assert isinstance(exchange.step(message), LoginFailed)
    assert isinstance(exchange.step(b""), LoginFailed)


def test_each_connection_is_offered_what_it_may_use() -> None:
    assert [str(m) for m in offered(private=True, certificate=True)] == ["SCRAM-SHA-256", "EXTERNAL", "PLAIN"]
    assert offered(private=True, certificate=False) == (SaslMechanism.SCRAM_SHA_256, SaslMechanism.PLAIN)
    assert offered(private=False, certificate=False) == (SaslMechanism.SCRAM_SHA_256,)


@ANY_STORE
@given(mechanism=st.sampled_from(SaslMechanism), messages=st.lists(st.binary(max_size=200), max_size=4))
def test_garbage_only_ever_fails(store: AccountStore, mechanism: SaslMechanism, messages: list[bytes]) -> None:
    exchange = begin(mechanism, store, CERTIFICATE)
    for message in messages:
        step = exchange.step(message)
        assert isinstance(step, Challenge | CredentialCheck | LoginFailed)


@ANY_STORE
@given(
    header=st.sampled_from(["n,,", "y,,", "n,a=ori,", "p=x,,", ""]) | PRINTABLE,
    bare=st.builds(",".join, st.lists(st.sampled_from(["n=ori", "n==2C", "r=abc", "m=x", "x="]) | PRINTABLE)),
    final=st.builds(",".join, st.lists(st.sampled_from(["c=biws", "c=!", "r=abc", "p=AAAA", "p="]) | PRINTABLE)),
)
def test_nearly_right_scram_only_ever_fails(store: AccountStore, header: str, bare: str, final: str) -> None:
    if not store.get("ori"):
        store.add(new_account("ori", UserClass.HUMAN, verifier=PasswordVerifier.of("hunter2", iterations=1)))
    exchange = ScramExchange(store)
    if isinstance(exchange.step(f"{header}{bare}".encode()), Challenge):
        assert isinstance(exchange.step(final.encode()), LoginFailed)


@pytest.mark.fault("C10")
def test_nothing_that_may_be_logged_shows_a_secret(store: AccountStore, make: Make) -> None:
    """C10: whatever ends up in a log line or a traceback's repr says nothing."""
    account = make("ori", "hunter2")
    token = store.add_token("ori", "laptop")
    account = replace(account, tokens=store.all()[0].tokens)
    check = PlainExchange(store).step(b"\0ori\0hunter2")
    scram = ScramExchange(store)
    things: list[object] = [account, account.verifier, account.tokens, check, scram, scram.step(b"n,,n=ori,r=a"), store]
    said = "".join(f"{thing!r}{thing}" for thing in things)
    assert account.verifier
    keys = (account.verifier.salt, account.verifier.stored_key, account.verifier.server_key)
    secrets = ["hunter2", token, account.tokens[0].digest]
    secrets += [text for key in keys for text in (repr(key), key.hex(), base64.b64encode(key).decode())]
    assert [secret for secret in secrets if secret in said] == []


def test_an_account_is_seen_by_its_name(make: Make) -> None:
    account: Account = make("ori", "hunter2")
    assert "ori" in repr(account) and "human" in repr(account)
