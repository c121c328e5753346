"""The ``oidc`` block of culture.yaml: login with the tokens of an OpenID provider."""

from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from culture.config.listen_policy import is_loopback
from culture.config.values import Duration, Misfit, Settings

_DISCOVERY = "/.well-known/openid-configuration"

Algorithm = Literal["RS256", "ES256", "EdDSA"]
Name = Annotated[str, Field(min_length=1)]


def trusted_address(text: str) -> str:
    """Return the URL unchanged if its answers cannot be forged: https, or http on loopback.

    Raises ValueError for any other.
    """
    try:
        address = urlsplit(text)
        is_whole = bool(address.hostname) and address.port != 0
    except ValueError:
        address, is_whole = urlsplit(""), False
    is_plain = text.isascii() and text.isprintable() and " " not in text
    if not is_whole or not is_plain or "@" in address.netloc or "#" in text or address.scheme not in ("https", "http"):
        raise ValueError("expected an address such as https://issuer.example.org/pool")
    if address.scheme == "http" and not is_loopback(address.hostname or ""):
        raise ValueError("must begin with https://, since it says whom to trust; http is for loopback alone")
    return text


def _issuer(text: str) -> str:
    if "?" in trusted_address(text):
        raise ValueError("an issuer has no ? in it: expected an address such as https://issuer.example.org/pool")
    return text


class Classes(Settings):
    """For each user class, the values of the token's class claim that stand for it.

    A user whose claim has none of them is of the class unknown.
    """

    human: tuple[Name, ...] = ()
    agent: tuple[Name, ...] = ()
    bot: tuple[Name, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether no value of the claim is listed for any class."""
        return not (self.human or self.agent or self.bot)


class Oidc(Settings):
    """The issuer (OpenID provider) whose tokens log in, and what these must contain."""

    issuer: Annotated[str, AfterValidator(_issuer)]
    audience: Name
    jwks_url: Annotated[str, AfterValidator(trusted_address)] | None = None
    account_claim: Name = "sub"
    class_claim: Name | None = None
    classes: Classes = Field(default_factory=Classes)
    algorithms: Annotated[tuple[Algorithm, ...], Field(min_length=1)] = ("RS256", "ES256", "EdDSA")
    clock_skew: Duration = 60.0
    refresh: Duration = 3600.0
    timeout: Duration = 5.0
    user: str | None = None

    @model_validator(mode="after")
    def _check_classes(self) -> Self:
        if self.class_claim is None and not self.classes.is_empty:
            raise Misfit("must name the claim that classes are found in", "class_claim")
        values = (*self.classes.human, *self.classes.agent, *self.classes.bot)
        if len(set(values)) != len(values):
            raise Misfit("must not name a value twice: a user has one class", "classes")
        return self

    @property
    def configuration(self) -> str:
        """Return the URL of the issuer's metadata (OpenID Connect Discovery 1.0 §4)."""
        return self.issuer.removesuffix("/") + _DISCOVERY
