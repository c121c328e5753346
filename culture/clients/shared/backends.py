"""Finding backends: each is a package with one entry point in the group ``culture.backends``."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from culture.clients.shared.base import AgentRunnerBase, SupervisorBase
from culture.clients.shared.programs import Found, installing
from culture.clients.shared.turn import Backend

GROUP = "culture.backends"


class NoBackend(Exception):
    """There is no backend of that name, or what it needs is not installed; the text says what to do."""


@cache
def installed() -> Mapping[str, Backend]:
    """The backends there are, by name; none of their SDKs is loaded."""
    return {point.name: point.load() for point in entry_points(group=GROUP)}


def backend(name: str) -> Backend:
    """The backend of that name."""
    found = installed().get(name)
    if found is None:
        raise NoBackend(f"{name!r} is no backend; there are {', '.join(sorted(installed()))}")
    return found


def runner_class(kind: Backend) -> type[AgentRunnerBase]:
    """The class that runs such an agent, with its SDK loaded."""
    found = _load(kind, kind.runner)
    if not issubclass(found, AgentRunnerBase):
        raise NoBackend(f"{kind.runner} is no AgentRunnerBase")
    return found


def supervisor_class(kind: Backend) -> type[SupervisorBase]:
    """The class that watches with this backend's model."""
    if kind.supervisor is None:
        raise NoBackend(f"{kind.name} has no supervisor")
    found = _load(kind, kind.supervisor)
    if not issubclass(found, SupervisorBase):
        raise NoBackend(f"{kind.supervisor} is no SupervisorBase")
    return found


def found(kind: Backend) -> tuple[Found, ...]:
    """What is installed of it, as it tells itself; nothing where it has no way to tell."""
    if kind.finder is None:
        return ()
    module, _, attribute = kind.finder.partition(":")
    programs: tuple[Found, ...] = getattr(import_module(module), attribute)()
    return programs


def never_asks(kind: Backend, options: Mapping[str, object]) -> bool:
    """Whether an agent of this backend works without asking people for permission, with these options."""
    key, values = kind.asks
    return options.get(key) not in values


def _load(kind: Backend, name: str) -> type:
    module, _, attribute = name.partition(":")
    try:
        loaded = import_module(module)
    except ImportError as error:
        raise NoBackend(f"backend {kind.name} needs {error.name}: install it with `{installing(kind.name)}`") from error
    found = getattr(loaded, attribute)
    if not isinstance(found, type):
        raise NoBackend(f"{name} is no class")
    return found
