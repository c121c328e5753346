"""The skills that are installed on this machine, and those of them that a configuration wants."""

from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any

from culture.config.error_messages import checked
from culture.config.errors import Key, dotted
from culture.config.model import ServerConfig
from culture.config.values import Misfit, Settings
from culture.server.errors import StartError, is_end
from culture.server.skill import Skill

GROUP = "culture.skills"
FEDERATION = "federation"


class WrongSkill(StartError):
    """The configuration wants a skill that cannot be had so; ``key`` is where it says so."""

    def __init__(self, key: Key, text: str) -> None:
        super().__init__(f"{dotted(key)}: {text}")
        self.key = key
        self.text = text


def wanted(config: ServerConfig) -> Iterator[tuple[str, type[Skill], Settings]]:
    """The skills of a configuration with their settings: the built-in ones that are on, then those of ``skills``.

    Links come first: what a skill makes of an event must not reach other servers before the event itself.
    """
    # Once for all of them: it reads what every package on the machine says of itself.
    installed = entry_points(group=GROUP)
    if has_links(config):
        yield FEDERATION, _find(installed, FEDERATION, ("links",)), config.federation
    for name, settings in config.built_in().items():
        if settings.enabled:
            yield name, _find(installed, name, (name,)), settings
    for name, said in config.skills.items():
        kind = _find(installed, name, ("skills", name))
        yield name, kind, _settings(kind, name, said)


def has_links(config: ServerConfig) -> bool:
    """Are there links to other servers, in the configuration or made on the command line?"""
    made = config.data_dir / FEDERATION / "links.json"
    return bool(config.links) or (config.nick_prefix == "required" and made.exists())


def federation(config: ServerConfig) -> tuple[str, type[Skill], Settings]:
    """The skill of servers with links."""
    return FEDERATION, _find(entry_points(group=GROUP), FEDERATION, ("links",)), config.federation


def _find(installed: EntryPoints, name: str, key: Key) -> type[Skill]:
    found = [*installed.select(name=name)]
    if not found:
        known = ", ".join(sorted({each.name for each in installed}))
        raise WrongSkill(key, f"no skill of this name is installed; installed are {known or 'none'}")
    if len({each.value for each in found}) > 1:
        raise WrongSkill(key, f"installed twice, {' and '.join(sorted(map(_shown, found)))}: take one away")
    return _loaded(found[0], key)


def _loaded(point: EntryPoint, key: Key) -> type[Skill]:
    try:
        kind = point.load()
    except BaseException as error:
        if is_end(error):
            raise
        raise WrongSkill(key, f"{_shown(point)} cannot be loaded: {error!r}") from error
    if not (isinstance(kind, type) and issubclass(kind, Skill)):
        raise WrongSkill(key, f"{_shown(point)} is no {Skill.__module__}.{Skill.__name__}")
    if getattr(kind, "name", None) != point.name:
        raise WrongSkill(key, f"{_shown(point)} has another name: give it name = {point.name!r}")
    return kind


def _shown(point: EntryPoint) -> str:
    return f"{point.value} of {point.dist.name}" if point.dist is not None else point.value


def _settings(kind: type[Skill], name: str, said: Mapping[str, Any]) -> Settings:
    try:
        return checked(kind.Settings, said)
    except Misfit as wrong:
        raise WrongSkill(("skills", name, *wrong.key), str(wrong)) from wrong
