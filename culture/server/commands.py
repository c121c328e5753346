"""The table of verbs: the handler of each, and what must hold before it runs."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from culture.protocol.message import Message

if TYPE_CHECKING:
    from culture.server.context import Context

    Handler = Callable[[Context, Message], "Later | Unanswered | None"]

_MARK = "__command__"
F = TypeVar("F", bound=Callable[..., Any])


class Later(NamedTuple):
    """Result of a handler that has to wait: ``then`` is called with the result of ``work``.

    The session takes no further command until ``then`` has answered; other sessions go on.
    """

    work: Awaitable[Any]
    then: "Callable[[Any], Later | None]"


class Unanswered(Enum):
    """Result of a handler that answers nothing yet: a later line of the client will be answered."""

    YET = "yet"


class Command(NamedTuple):
    """A verb, its handler and least number of parameters; ``early``: valid before registration."""

    verb: str
    handler: "Handler"
    params: int
    early: bool


def command(verb: str, params: int = 0, early: bool = False) -> Callable[[F], F]:
    """Mark a function (or a skill's method) as the handler of a verb.

    ``params``: least number of parameters. ``early``: the verb is valid before the client has registered.
    """

    def mark(function: F) -> F:
        setattr(function, _MARK, (verb, params, early))
        return function

    return mark


def table(*places: object) -> Mapping[str, Command]:
    """Return the commands that these modules and skills (``places``) handle, by verb.

    Raises ValueError if two handle the same verb.
    """
    commands: dict[str, Command] = {}
    for place in places:
        for handler, (verb, params, early) in marked(place, _MARK):
            if verb in commands:
                raise ValueError(f"the verb {verb} exists already")
            commands[verb] = Command(verb, handler, params, early)
    return commands


def marked(place: object, mark: str) -> Iterator[tuple[Any, Any]]:
    """Yield the functions of a module or object that have an attribute ``mark``, with its value."""
    # Looked up in the classes: a property of a skill may have no value before its start.
    members = dict[str, object]()
    for each in (*map(vars, reversed(type(place).__mro__)), getattr(place, "__dict__", {})):
        members |= each
    for name in sorted(members):
        value = getattr(members[name], mark, None)
        if value is not None:
            yield getattr(place, name), value
