"""What culture.yaml may say about the skills that come with the server."""

import re
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from culture.config.values import Channel, Count, Duration, Folder, Hidden, Misfit, Secret, Settings

_SCHEMES = ("postgresql://", "postgres://")


def _store(text: str) -> str:
    """What is wrong is not quoted: it may have a password in it."""
    if text == "sqlite":
        return text
    if not text.startswith(_SCHEMES):
        raise ValueError("expected sqlite, or an address such as postgresql://user@host/database")
    _, _, path, query, fragment = urlsplit(text)
    if "@" in path + query + fragment or "password=" in query:
        raise ValueError("a password stands before the host: user:password@host, with %2F for /, %3F for ?, %23 for #")
    return text


def _skill_name(name: str) -> str:
    if not re.fullmatch("[a-z][a-z0-9_-]*", name):
        raise ValueError(f"{name!r} must be a skill's name: a-z, 0-9, - and _, a letter first")
    return name


def _block(value: object) -> object:
    """``dice:`` with nothing behind it wants the skill as it is."""
    return {} if value is None else value


SkillName = Annotated[str, AfterValidator(_skill_name)]
Others = Annotated[
    dict[SkillName, Annotated[dict[str, Any], BeforeValidator(_block)]], BeforeValidator(_block), Hidden()
]
"""The skills of others with their blocks; what is secret in these only the skill knows, so that nothing is shown."""


class Builtin(Settings):
    """What every skill of ours has."""

    enabled: bool = True


class Retention(Settings):
    """How much is kept of a channel; what is not said is kept for ever."""

    age: Duration | None = None
    size: Count | None = None
    """Bytes of text, newest first."""


def _endpoint(text: str) -> str:
    address = urlsplit(text)
    is_plain = address.username is None and not address.query and not address.fragment and text.isprintable()
    if address.scheme not in ("http", "https") or not address.hostname or address.port == 0 or not is_plain:
        raise ValueError("expected an address such as http://127.0.0.1:8080/v1")
    return text


def _key(text: str) -> str:
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise ValueError("a key has no spaces and nothing but ASCII in it")
    return text


class Embeddings(Settings):
    """How HISTORY SEMANTIC finds by meaning: the offline model, or an endpoint that speaks OpenAI's embeddings."""

    enabled: bool = True
    url: Annotated[str, AfterValidator(_endpoint)] | None = None
    model: str = ""
    key: Annotated[Secret, AfterValidator(_key)] | None = Field(None, repr=False)
    timeout: Duration = 10.0
    user: str | None = None

    @model_validator(mode="after")
    def _an_endpoint_has_a_model(self) -> Self:
        if self.url is not None and not self.model:
            raise Misfit("must name the model that the endpoint is to use", "model")
        return self


class HistoryConfig(Builtin):
    """What was said, kept on disk."""

    store: Annotated[str, AfterValidator(_store), Field(repr=False)] = "sqlite"
    replay: Annotated[int, Field(ge=0, le=1000)] = 20
    rows: Annotated[int, Field(ge=1, le=1000)] = 1000
    search_timeout: Duration = 1.0
    pending: Count = 50_000
    keep: Retention = Field(default_factory=Retention)
    channels: dict[Channel, Retention] = Field(default_factory=dict)
    private: Retention = Field(default_factory=Retention)
    semantic: Embeddings = Field(default_factory=Embeddings)


class LoggerConfig(Builtin):
    """Channel logs as files that people read."""

    enabled: bool = False
    folder: Folder | None = None
    channels: tuple[Channel, ...] = ()
    git: bool = False
    commit_every: Duration = 3600.0


class RoomsConfig(Builtin):
    """Channels whose tags call agents."""


class LedgerConfig(Builtin):
    """What the agents of the mesh say of themselves."""

    age: Duration = 30 * 86400.0
    keep: Count = 200_000
    keep_each: Count = 20_000


class AuditConfig(Builtin):
    """What was done, written to files that only grow."""

    folder: Folder | None = None
    messages: Literal["agents", "all"] = "agents"
    size: Count = 10_000_000
    """Bytes of a file before the next one is begun."""
    files: Count = 100
    """How many full ones are kept."""


class UrlIndexConfig(Builtin):
    """The links that were shared."""

    rows: Annotated[int, Field(ge=1, le=1000)] = 1000
    keep: Count = 100_000
