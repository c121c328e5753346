"""Types of values that configuration files share: durations, counts, secrets, names."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from culture.protocol.channel_names import fault_in
from culture.protocol.names import valid_channel

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d)?")
_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_LONGEST_CHANNEL = 200
_LONGEST_NAME = 63


class Settings(BaseModel):
    """A block of settings, which cannot be changed; unknown keys are errors.

    The validator is built when a file is read: most commands read one of several files.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, defer_build=True)


class Misfit(ValueError):
    """Settings of a block contradict each other.

    ``key``: the keys that lead from the block to the wrong setting.
    """

    def __init__(self, text: str, *key: str | int) -> None:
        super().__init__(text)
        self.key = key


@dataclass(frozen=True)
class Hidden:
    """Marks the type of a setting whose value is never printed."""


def seconds(value: object) -> object:
    """Return a duration such as ``30s``, ``30m``, ``8h`` or a plain number as seconds.

    Raises ValueError for any other value.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError("expected a duration such as 30s, 30m or 8h, or a number of seconds")
    number, unit = match.groups()
    return float(number) * UNITS[unit or "s"]


def _as_user(value: object) -> object:
    """Return a number (uid) as text, and any other value unchanged.

    In a container a user may have no name.
    """
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


SystemUser = Annotated[str, BeforeValidator(_as_user), Field(min_length=1)]
"""A local user, by name or uid."""


def as_path(value: object) -> object:
    """Return text as a path with ``~`` expanded; a value that is no text is unchanged."""
    return Path(value).expanduser() if isinstance(value, str | Path) else value


def channel_name(name: str) -> str:
    """Return the name unchanged if a channel can have it; else raise ValueError."""
    if not valid_channel(name, _LONGEST_CHANNEL):
        raise ValueError(f"{name!r} is not a channel: it begins with # and has no spaces or commas")
    return name


def new_channel_name(name: str) -> str:
    """Return the name unchanged if a new channel may have it; else raise ValueError."""
    if (fault := fault_in(channel_name(name))) is not None:
        raise ValueError(f"{name!a} cannot be the name of a channel. {fault}")
    return name


def server_name(name: str) -> str:
    """Return the name unchanged if a server may have it; else raise ValueError."""
    if len(name) > _LONGEST_NAME or not _HOST_NAME.fullmatch(name):
        raise ValueError(f"{name!r} does not look like a host name, for example spark or spark.local")
    return name


def fingerprint(text: str) -> str:
    """Normalise a SHA-256 fingerprint of a certificate: lower case, without colons.

    Raises ValueError for text that is not 64 hex digits.
    """
    plain = text.replace(":", "").lower()
    if not re.fullmatch("[0-9a-f]{64}", plain):
        raise ValueError(f"{text!r} is not the SHA-256 fingerprint of a certificate: 64 hexadecimal digits")
    return plain


def is_given(value: object) -> object:
    """Return the value unchanged; raise ValueError if it is None.

    YAML makes None of ``password: #x``, where a comment begins: there would be no password.
    """
    if value is None:
        raise ValueError("expected text, found nothing: leave the line out, or quote a password that begins with #")
    return value


Count = Annotated[int, Field(ge=1)]
Port = Annotated[int, Field(ge=0, le=65535)]
Duration = Annotated[float, Field(gt=0, allow_inf_nan=False), BeforeValidator(seconds)]
Folder = Annotated[Path, BeforeValidator(as_path)]
File = Annotated[Path, BeforeValidator(as_path)]
Channel = Annotated[str, AfterValidator(channel_name)]
NewChannel = Annotated[str, AfterValidator(new_channel_name)]
Fingerprint = Annotated[str, AfterValidator(fingerprint)]
ServerName = Annotated[str, AfterValidator(server_name)]
Secret = Annotated[str, Field(min_length=1), Hidden()]
"""Text that ``culture server config`` does not show; give the field ``repr=False`` as well."""
