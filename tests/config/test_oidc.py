"""What may be said about an issuer of tokens."""

import pytest

from culture.config.errors import ConfigError
from culture.config.load import load_server
from tests.config.conftest import Write

BLOCK = "oidc: {{issuer: 'https://issuer.example.org/pool', audience: culture{more}}}"


def said(write: Write, text: str) -> str:
    with pytest.raises(ConfigError) as wrong:
        load_server(write(text))
    return str(wrong.value)


def test_the_least_that_is_needed(write: Write) -> None:
    oidc = load_server(write(BLOCK.format(more=""))).config.oidc
    assert oidc is not None and oidc.account_claim == "sub" and oidc.classes.is_empty
    assert oidc.configuration == "https://issuer.example.org/pool/.well-known/openid-configuration"
    assert "is missing" in said(write, "oidc: {issuer: 'https://issuer.example.org'}")
    assert "is missing" in said(write, "oidc: {audience: culture}")


@pytest.mark.parametrize(
    "issuer", ["http://127.0.0.1:8080", "http://localhost/realms/a", "http://[::1]:1", "https://a.b"]
)
def test_addresses_that_can_be_trusted(write: Write, issuer: str) -> None:
    oidc = load_server(write(f"oidc: {{issuer: '{issuer}', audience: culture}}")).config.oidc
    assert oidc is not None and oidc.issuer == issuer


@pytest.mark.parametrize(
    ("issuer", "why"),
    [
        ("http://issuer.example.org", "must begin with https://"),
        ("http://192.0.2.1/", "must begin with https://"),
        ("issuer.example.org", "expected an address"),
        ("ftp://issuer.example.org", "expected an address"),
        ("https://ori:secret@issuer.example.org", "expected an address"),
        ("https://issuer.example.org/#here", "expected an address"),
        ("https://issuer.example.org/?realm=a", "has no ?"),
        ("https://issuer.example.org:99999", "expected an address"),
        ("https://issuer.example.org/a b", "expected an address"),
        ("https://", "expected an address"),
        ("", "expected an address"),
    ],
)
def test_addresses_that_cannot(write: Write, issuer: str, why: str) -> None:
    assert why in said(write, f"oidc: {{issuer: '{issuer}', audience: culture}}")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("algorithms: [none]", "expected 'RS256'"),
        ("algorithms: [HS256]", "expected 'RS256'"),
        ("algorithms: []", "at least 1"),
        ("jwks_url: 'http://keys.example.org'", "must begin with https://"),
        ("classes: {human: [people]}", "must name the claim"),
        ("class_claim: groups, classes: {human: [a], agent: [a]}", "a user has one class"),
        ("classes: {unknown: [a]}", "unknown key"),
        ("audiences: [a]", "did you mean audience?"),
    ],
)
def test_what_does_not_go_together(write: Write, more: str, why: str) -> None:
    assert why in said(write, BLOCK.format(more=f", {more}"))
