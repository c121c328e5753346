"""The accounts file: JSON with a schema version, and migrations from older schemas."""

import base64
import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from culture.protocol.names import fold
from culture.protocol.vocabulary import UserClass
from culture.runtime import REAL, Runtime
from culture.server.auth.accounts import (
    Account,
    AccountRefused,
    Subject,
    Token,
    fingerprint,
    stored_account_name,
    token_label,
    user_word,
    via_word,
)
from culture.server.auth.password import PasswordVerifier
from culture.server.shapes import Json, UnreadableJson, forward, items, mapping, number, refuse_unknown, text

_KEY_BYTES = 32
_NEW_KEY = object()  # stands for a key in a document that has none


class AccountFileContents(NamedTuple):
    """The accounts of an accounts file, by folded name, and the key for fake password verifiers."""

    accounts: Mapping[str, Account]
    key: bytes


def _add_key(document: Json) -> Json:
    """Migrate an accounts file of schema 0, which lacks the key for fake verifiers: a new one is made."""
    return {"key": _NEW_KEY, "accounts": [], **document}


# MIGRATIONS[n] converts schema n to schema n + 1.
MIGRATIONS: tuple[Callable[[Json], Json], ...] = (_add_key,)


def empty(*, runtime: Runtime = REAL) -> AccountFileContents:
    """Return the contents of a new accounts file: no accounts, and a new key for fake verifiers."""
    return AccountFileContents({}, runtime.token_bytes(_KEY_BYTES))


def dump(contents: AccountFileContents) -> bytes:
    """Return the contents of an accounts file as JSON."""
    document = {
        "schema": len(MIGRATIONS),
        "key": contents.key.hex(),
        "accounts": [_written(account) for account in contents.accounts.values()],
    }
    return (json.dumps(document, indent=1) + "\n").encode()


def parse(data: bytes, *, runtime: Runtime = REAL) -> AccountFileContents:
    """Parse an accounts file of any schema and return its contents.

    Raises UnreadableJson if the file is damaged.
    """
    try:
        document = forward(mapping(json.loads(data)), MIGRATIONS)
        key = runtime.token_bytes(_KEY_BYTES) if document["key"] is _NEW_KEY else bytes.fromhex(text(document["key"]))
        accounts = [_read(mapping(item)) for item in items(document["accounts"])]
    except UnreadableJson:
        raise
    except KeyError as error:
        raise UnreadableJson(f"{error.args[0]} is missing") from error
    except (ValueError, TypeError, RecursionError, AccountRefused) as error:
        raise UnreadableJson(str(error)) from error
    by_name = {fold(account.name): account for account in accounts}
    subjects = [account.subject for account in accounts if account.subject]
    if len(by_name) != len(accounts) or len(set(subjects)) != len(subjects):
        raise UnreadableJson("an account is there twice")
    if not key:
        raise UnreadableJson("key is empty")
    return AccountFileContents(by_name, key)


def _written(account: Account) -> Json:
    verifier = account.verifier
    return {
        "name": account.name,
        "class": account.kind.value,
        "always_on": account.always_on,
        "created": account.created,
        "revoked": account.revoked,
        "revocations": account.revocations,
        "nicks": list(account.nicks),
        "certificates": list(account.certificates),
        "tokens": {token.label: token.digest for token in account.tokens},
        "scram_sha_256": verifier
        and {
            "iterations": verifier.iterations,
            "salt": _base64(verifier.salt),
            "stored_key": _base64(verifier.stored_key),
            "server_key": _base64(verifier.server_key),
        },
        **_subject_written(account.subject),
        **({} if account.via is None else {"via": account.via}),
        **({} if account.user is None else {"user": account.user}),
    }


def _subject_written(subject: Subject | None) -> Json:
    return {} if subject is None else {"oidc": {"issuer": subject.issuer, "subject": subject.name}}


_KNOWN = frozenset(
    {
        "name",
        "class",
        "always_on",
        "created",
        "revoked",
        "revocations",
        "nicks",
        "certificates",
        "tokens",
        "scram_sha_256",
        "oidc",
        "via",
        "user",
    }
)


def _read(item: Json) -> Account:
    """Return an account from its JSON object; keys that are missing get their defaults.

    Raises UnreadableJson for unknown keys.
    """
    refuse_unknown(item, _KNOWN)
    kind = UserClass(text(item["class"]))
    always_on = item.get("always_on", kind is UserClass.HUMAN)
    if not isinstance(always_on, bool):
        raise UnreadableJson("always_on is neither true nor false")
    scram, revoked, subject = item.get("scram_sha_256"), item.get("revoked"), item.get("oidc")
    tokens, via, user = mapping(item.get("tokens", {})), item.get("via"), item.get("user")
    return Account(
        name=stored_account_name(text(item["name"])),
        kind=kind,
        always_on=always_on,
        created=text(item.get("created", "")),
        revoked=None if revoked is None else text(revoked),
        revocations=int(number(item.get("revocations", 0))),
        nicks=tuple(stored_account_name(text(nick)) for nick in items(item.get("nicks", []))),
        certificates=tuple(fingerprint(text(each)) for each in items(item.get("certificates", []))),
        tokens=tuple(Token(token_label(label), fingerprint(text(digest))) for label, digest in tokens.items()),
        verifier=None if scram is None else _verifier(mapping(scram)),
        subject=None if subject is None else _subject(mapping(subject)),
        via=None if via is None else via_word(text(via), kind),
        user=None if user is None else user_word(text(user)),
    )


def _subject(item: Json) -> Subject:
    refuse_unknown(item, frozenset({"issuer", "subject"}))
    return Subject(text(item["issuer"]), text(item["subject"]))


def _verifier(item: Json) -> PasswordVerifier:
    iterations = item["iterations"]
    if not isinstance(iterations, int) or iterations < 1:
        raise UnreadableJson("iterations is not a number")
    salt, stored_key, server_key = (
        base64.b64decode(text(item[part]), validate=True) for part in ("salt", "stored_key", "server_key")
    )
    if not salt or len(stored_key) != 32 or len(server_key) != 32:
        raise UnreadableJson("a verifier is cut short")
    return PasswordVerifier(salt, iterations, stored_key, server_key)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
