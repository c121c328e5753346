"""Finds the skills that a configuration wants; starts federation once there is a link."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import TYPE_CHECKING, Any

from culture.config.error_messages import checked
from culture.config.errors import Key, dotted
from culture.config.model import ServerConfig
from culture.config.values import Misfit, Settings
from culture.server.errors import StartError, is_end
from culture.server.skill import Skill

if TYPE_CHECKING:
    from culture.server.context import ServerParts

log = logging.getLogger(__name__)

_PERIOD = 1.0  # seconds between looks for a first link
GROUP = "culture.skills"
FEDERATION = "federation"


class WrongSkill(StartError):
    """The configuration names a skill that is not installed or cannot be used.

    ``key`` is the setting that names it.
    """

    def __init__(self, key: Key, text: str) -> None:
        super().__init__(f"{dotted(key)}: {text}")
        self.key = key
        self.text = text


def wanted(config: ServerConfig) -> Iterator[tuple[str, type[Skill], Settings]]:
    """Yield name, class and settings of each configured skill.

    The order is: federation, built-in skills, those under ``skills``. Federation comes first: an event that a skill
    publishes must not reach other servers before the event that caused it. Raises WrongSkill.
    """
    # Once for all skills: it reads the metadata of every installed package.
    installed = entry_points(group=GROUP)
    if has_links(config):
        yield FEDERATION, _find(installed, FEDERATION, ("links",)), config.federation
    for name, settings in config.built_in().items():
        if settings.enabled:
            yield name, _find(installed, name, (name,)), settings
    for name, values in config.skills.items():
        kind = _find(installed, name, ("skills", name))
        yield name, kind, _settings(kind, name, values)


def has_links(config: ServerConfig) -> bool:
    """Return whether this server has links to others: in the configuration or by a command."""
    saved = config.data_dir / FEDERATION / "links.json"
    return bool(config.links) or (config.nick_prefix == "required" and saved.exists())


async def watch_for_links(parts: "ServerParts") -> None:
    """Wait until a server without links gets its first link, and start the federation skill.

    ``parts``: the parts of the running server.
    """
    while not parts.skills.has(FEDERATION):
        await asyncio.sleep(_PERIOD)
        if not has_links(parts.config) or parts.skills.has(FEDERATION):
            continue
        try:
            skill = _find(entry_points(group=GROUP), FEDERATION, ("links",))
            await parts.skills.add_first(FEDERATION, skill, parts.config.federation)
        except StartError as error:
            log.error("this server cannot link to others: %s", error)
            return


def _find(installed: EntryPoints, name: str, key: Key) -> type[Skill]:
    points = [*installed.select(name=name)]
    if not points:
        names = ", ".join(sorted({each.name for each in installed}))
        raise WrongSkill(key, f"no skill of this name is installed; installed are {names or 'none'}")
    if len({each.value for each in points}) > 1:
        raise WrongSkill(key, f"installed twice, {' and '.join(sorted(map(_described, points)))}: take one away")
    return _loaded(points[0], key)


def _loaded(point: EntryPoint, key: Key) -> type[Skill]:
    try:
        kind = point.load()
    except BaseException as error:
        if is_end(error):
            raise
        raise WrongSkill(key, f"{_described(point)} cannot be loaded: {error!r}") from error
    if not (isinstance(kind, type) and issubclass(kind, Skill)):
        raise WrongSkill(key, f"{_described(point)} is no {Skill.__module__}.{Skill.__name__}")
    if getattr(kind, "name", None) != point.name:
        raise WrongSkill(key, f"{_described(point)} has another name: give it name = {point.name!r}")
    return kind


def _described(point: EntryPoint) -> str:
    return f"{point.value} of {point.dist.name}" if point.dist is not None else point.value


def _settings(kind: type[Skill], name: str, values: Mapping[str, Any]) -> Settings:
    try:
        return checked(kind.Settings, values)
    except Misfit as wrong:
        raise WrongSkill(("skills", name, *wrong.key), str(wrong)) from wrong
