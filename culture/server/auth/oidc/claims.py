"""Checks the claims of a token and maps them to an account name and class."""

from typing import NamedTuple

from culture.config.oidc import Oidc
from culture.protocol.vocabulary import UserClass
from culture.server.auth.accounts import Subject
from culture.server.auth.oidc.errors import Rejected
from culture.server.shapes import Json, UnreadableJson, number

_LONGEST_SUBJECT = 255


class Bearing(NamedTuple):
    """The user whom a valid token names: the issuer's id of the user, name here, and class."""

    subject: Subject
    name: str
    kind: UserClass


def judged(claims: Json, settings: Oidc, now: float) -> Bearing:
    """Return the user whom a token's claims name: issuer's id, name here, and class.

    ``settings``: the issuer, and what its claims mean. Raises Rejected unless the token is valid at ``now`` (seconds
    since 1970) and was issued for this server.
    """
    if claims.get("iss") != settings.issuer:
        raise Rejected("it is another issuer's")
    if settings.audience not in _several(claims.get("aud")):
        raise Rejected("it is for somebody else (aud)")
    if "cnf" in claims:  # RFC 7800: whoever shows it would have to prove more than that they have it
        raise Rejected("it is bound to a key, which OAUTHBEARER cannot show")
    _check_time(claims, settings.clock_skew, now)
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT:
        raise Rejected("it does not say whom it is about (sub)")
    name = claims.get(settings.account_claim)
    if not isinstance(name, str):
        raise Rejected(f"it has no claim {settings.account_claim} that could name an account")
    return Bearing(Subject(settings.issuer, subject), name, _class(claims, settings))


def _check_time(claims: Json, skew: float, now: float) -> None:
    if _time(claims, "exp") <= now - skew:
        raise Rejected("it has expired")
    if "nbf" in claims and _time(claims, "nbf") > now + skew:
        raise Rejected("it is not valid yet")
    if "iat" in claims and _time(claims, "iat") > now + skew:
        raise Rejected("it was issued in the future: compare the clocks")


def _time(claims: Json, name: str) -> float:
    try:
        return number(claims.get(name))
    except UnreadableJson as error:
        raise Rejected(f"{name} is no time") from error


def _class(claims: Json, settings: Oidc) -> UserClass:
    """Return the user class that the token's class claim stands for, by the settings.

    If several classes match, a class of programs wins over human.
    """
    if settings.class_claim is None:
        return UserClass.UNKNOWN
    texts, classes = _several(claims.get(settings.class_claim)), settings.classes
    for kind, values in (
        (UserClass.AGENT, classes.agent),
        (UserClass.BOT, classes.bot),
        (UserClass.HUMAN, classes.human),
    ):
        if not texts.isdisjoint(values):
            return kind
    return UserClass.UNKNOWN


def _several(value: object) -> set[str]:
    """Return a claim's text or list of texts as a set; any other value as an empty set."""
    if isinstance(value, str):
        return {value}
    return {each for each in value if isinstance(each, str)} if isinstance(value, list) else set()
