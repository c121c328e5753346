"""Build the options of Copilot's SDK from an agent's setup, and our instructions for it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from copilot.session import ProviderConfig, ReasoningEffort

from culture.clients.copilot.detect import INSTALL, PATH_VARIABLE, program
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.instructions import SHORT_CONTEXT, joined
from culture.clients.shared.options import check_directory, chosen

ALLOW, ASK = "allow", "ask"
MODES = (ALLOW, ASK)
EFFORTS: Mapping[str, ReasoningEffort] = {level: level for level in get_args(ReasoningEffort)} | {"ultrathink": "max"}
# "medium" is the default of every agent, and not every model supports an effort.
LEFT_TO_THE_MODEL = frozenset({"medium", "off", "none", "disabled"})
DEEP: ReasoningEffort = "high"

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "type": ("openai", "azure", "anthropic"),
    "wire_api": ("completions", "responses"),
}
_KEY = "api_key_env"
_TEXTS = ("base_url", _KEY, "api_version")
_FIGURES = ("max_prompt_tokens",)
INSTRUCTIONS = f"""\
# Nobody sits in front of you

You are in no terminal. Whoever calls you is on IRC and sees only what is said there: what you say after your last \
work in a turn, and what you send with your irc skill.

# Think at length when it is worth it

Ordinary work needs ordinary thought. Think longer for planning, for a bug that does not give way, and for decisions \
about architecture, or when a whisper says [THINK_DEEPER]. Go back to ordinary thought afterwards.

{SHORT_CONTEXT}"""


@dataclass(frozen=True, slots=True)
class CopilotOptions:
    """Validated options for Copilot, of an agent or of its supervisor."""

    program: Path
    environment: Mapping[str, str]
    """Environment of its processes, without the provider's key."""
    model: str | None
    effort: ReasoningEffort | None
    provider: ProviderConfig | None


def read(
    nick: str,
    directory: Path,
    options: Mapping[str, object],
    environment: Mapping[str, str],
    *,
    model: str | None,
    thinking: str,
) -> CopilotOptions:
    """Return an agent's validated settings for Copilot; ``WrongConfiguration`` on mistakes.

    ``directory``: the agent's folder; ``options``: its settings that only Copilot has; ``environment``: further
    variables; ``thinking``: how long the model thinks, such as ``medium``.
    """
    check_directory(directory)
    everything = {**os.environ, **environment}
    provider = _provider(options.get("provider"), everything)
    if provider is not None and not model:
        raise WrongConfiguration(f"{nick}: provider: say which of its models to use, with model")
    hidden = _secret(options.get("provider"))
    return CopilotOptions(
        program=_program(options.get("copilot_path"), everything),
        environment={name: value for name, value in everything.items() if name != hidden},
        model=model,
        effort=effort(thinking),
        provider=provider,
    )


def effort(thinking: str) -> ReasoningEffort | None:
    """Return the reasoning effort for a ``thinking`` setting; None: the model's own choice.

    ``WrongConfiguration`` if the setting is unknown.
    """
    if thinking in LEFT_TO_THE_MODEL:
        return None
    if thinking not in EFFORTS:
        raise WrongConfiguration(f"thinking: {thinking!r} is none of {', '.join([*EFFORTS, 'off'])}")
    return EFFORTS[thinking]


def asks(options: Mapping[str, object]) -> bool:
    """Return whether the settings make the agent ask people for permissions.

    By default it works without asking.
    """
    return chosen(options, "permission_mode", MODES) == ASK


def _program(named: object, environment: Mapping[str, str]) -> Path:
    if named is not None and not isinstance(named, str):
        raise WrongConfiguration(f"copilot_path: {named!r} is no path")
    name = named or environment.get(PATH_VARIABLE) or "copilot"
    path = program(name, environment)
    if path is None:
        raise WrongConfiguration(
            f"the Copilot CLI is not there ({name}): {INSTALL}, or say where it is in copilot_path"
        )
    return path


def _secret(given: object) -> str | None:
    """Return the name of the environment variable with the provider's API key, or None.

    ``given``: the setting ``provider``.
    """
    return given.get(_KEY) if isinstance(given, dict) else None


def _provider(given: object, environment: Mapping[str, str]) -> ProviderConfig | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        raise WrongConfiguration("provider: expected a mapping with type, base_url and api_key_env")
    for key, value in given.items():
        _check(key, value)
    if not given.get("base_url"):
        raise WrongConfiguration("provider.base_url: say where the provider is, as in http://localhost:11434/v1")
    made = ProviderConfig(type=given.get("type", "openai"), base_url=given["base_url"])
    if "wire_api" in given:
        made["wire_api"] = given["wire_api"]
    if "max_prompt_tokens" in given:
        made["max_prompt_tokens"] = given["max_prompt_tokens"]
    if "api_version" in given:
        made["azure"] = {"api_version": given["api_version"]}
    if _KEY in given:
        made["api_key"] = _value(given[_KEY], environment)
    return made


def _check(key: object, value: object) -> None:
    if key == "api_key":
        raise WrongConfiguration(f"provider.api_key: a key does not belong here; name its variable with {_KEY}")
    if key in _CHOICES:
        if value not in (choices := _CHOICES[str(key)]):
            raise WrongConfiguration(f"provider.{key}: {value!r} is none of {', '.join(choices)}")
    elif key in _TEXTS:
        if not isinstance(value, str):
            raise WrongConfiguration(f"provider.{key}: {value!r} is no text")
    elif key in _FIGURES:
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            raise WrongConfiguration(f"provider.{key}: {value!r} is no number of tokens")
    else:
        known = ", ".join((*_CHOICES, *_TEXTS, *_FIGURES))
        raise WrongConfiguration(f"provider.{key}: unknown key; there are {known}")


def _value(variable: str, environment: Mapping[str, str]) -> str:
    if not (value := environment.get(variable)):
        raise WrongConfiguration(f"provider.{_KEY}: the daemon's environment has no {variable}")
    return value


def appended(instructions: str, note: str = "") -> str:
    """Return the text appended to Copilot's system prompt.

    It has the agent's instructions, those of culture for Copilot, and ``note``.
    """
    return joined(instructions, INSTRUCTIONS, note)
