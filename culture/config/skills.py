"""The blocks of the built-in skills in culture.yaml."""

import re
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from culture.config.values import Channel, Count, Duration, Folder, Hidden, Misfit, Secret, Settings

_SCHEMES = ("postgresql://", "postgres://")


def _store(text: str) -> str:
    """Return the address of the history's store unchanged: ``sqlite`` or a PostgreSQL URL.

    Raises ValueError, whose text does not quote a wrong address, since that may contain a password.
    """
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
    """Return an empty block (default settings) for None, as in ``dice:``.

    Other values unchanged.
    """
    return {} if value is None else value


SkillName = Annotated[str, AfterValidator(_skill_name)]
Others = Annotated[
    dict[SkillName, Annotated[dict[str, Any], BeforeValidator(_block)]], BeforeValidator(_block), Hidden()
]
"""Blocks of other skills; only they know which settings are secret, so none is shown."""


class Builtin(Settings):
    """The setting that all built-in skills have: whether the skill is enabled."""

    enabled: bool = True


class Retention(Settings):
    """How much of a channel's history is kept; without a limit, all of it."""

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
        raise ValueError("a key consists of ASCII characters without spaces")
    return text


class Embeddings(Settings):
    """Search by meaning (HISTORY SEMANTIC): the offline model, or an OpenAI-compatible endpoint."""

    enabled: bool = True
    url: Annotated[str, AfterValidator(_endpoint)] | None = None
    model: str = ""
    key: Annotated[Secret, AfterValidator(_key)] | None = Field(None, repr=False)
    timeout: Duration = 10.0
    user: str | None = None

    @model_validator(mode="after")
    def _check_model(self) -> Self:
        if self.url is not None and not self.model:
            raise Misfit("must name a model of the endpoint", "model")
        return self


class HistoryConfig(Builtin):
    """Settings of the message history, which is kept on disk."""

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
    """Settings of the channel logs, text files for people."""

    enabled: bool = False
    folder: Folder | None = None
    channels: tuple[Channel, ...] = ()
    git: bool = False
    commit_every: Duration = 3600.0


class RoomsConfig(Builtin):
    """Settings of the skill that invites agents to channels by the channels' tags."""


class LedgerConfig(Builtin):
    """Settings of the ledger: facts that agents report, such as state, questions and spending."""

    age: Duration = 30 * 86400.0
    keep: Count = 200_000
    keep_each: Count = 20_000


class AuditConfig(Builtin):
    """Settings of the audit log, which records actions in files that only grow."""

    folder: Folder | None = None
    messages: Literal["agents", "all"] = "agents"
    size: Count = 10_000_000
    """Bytes of a file after which the next one begins."""
    files: Count = 100
    """Number of full files that are kept."""


class UrlIndexConfig(Builtin):
    """Settings of the index of links that were shared in channels."""

    rows: Annotated[int, Field(ge=1, le=1000)] = 1000
    keep: Count = 100_000
