"""Secrets are compared in one place, in constant time."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from culture.lib.secret_compare import same_secret

SOURCE = Path(__file__).parents[3] / "culture"
THE_PLACE = SOURCE / "lib" / "secret_compare.py"
SECRET = re.compile(r"(^|_)(pass(word|wd)?|secrets?|tokens?|digest|proof|signature|(stored|server|client)_key)$")


def word(node: ast.expr) -> str:
    """What a value is called, as far as it is called anything."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=func):
            return word(func)
        case ast.Subscript(value=value):
            return word(value)
    return ""


def comparisons(source: str) -> Iterator[int]:
    """The lines where something that is called like a secret is compared, or the comparing function is used."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(attr="compare_digest") | ast.alias(name="compare_digest"):
                yield node.lineno
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = [left, *others]
                plain = any(isinstance(op, ast.Eq | ast.NotEq) for op in ops)
                # What is compared with a constant is not secret.
                plain = plain and not any(isinstance(side, ast.Constant) for side in sides)
                if plain and any(SECRET.search(word(side)) for side in sides):
                    yield node.lineno


@pytest.mark.fault("C4")
def test_secrets_are_compared_in_one_place() -> None:
    """C4: no ``==`` on a secret, and no second constant-time comparison."""
    found = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line in comparisons(path.read_text(encoding="utf-8"))
        if path != THE_PLACE
    ]
    assert found == []
    assert list(comparisons(THE_PLACE.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "source",
    [
        "given == password",
        "account.token != given",
        "hmac.compare_digest(a, b)",
        "from hmac import compare_digest",
        "self.stored_key == other",
        "hashlib.sha256(x).digest() == wanted",
        "a < b == client_secret",
    ],
)
def test_a_comparison_is_found(source: str) -> None:
    assert list(comparisons(source)) == [1]


@pytest.mark.parametrize(
    "source", ["password is None", "not token", "token == '?'", "same_secret(a, password)", "len(proof) != 32"]
)
def test_a_harmless_look_is_not(source: str) -> None:
    assert list(comparisons(source)) == []


@pytest.mark.fault("C2")
def test_only_the_same_secret_is_the_same() -> None:
    """C2: nothing at all never matches, not even nothing at all."""
    assert same_secret("hunter2", "hunter2") and same_secret(b"hunter2", "hunter2") and same_secret("\udcff", "\udcff")
    assert not same_secret("hunter2", "hunter3") and not same_secret("é", "e")
    for nothing in ("", b"", None):
        assert not same_secret(nothing, "hunter2") and not same_secret("hunter2", nothing)
        assert not same_secret(nothing, nothing)
