"""The table of verbs: what each needs before its handler runs."""

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
    """What a handler returns whose work is done elsewhere: the session waits, then ``then`` answers with the result."""

    work: Awaitable[Any]
    then: "Callable[[Any], Later | None]"


class Unanswered(Enum):
    """What a handler returns that is answered, under the label of this line, with a later line of the client."""

    YET = "yet"


class Command(NamedTuple):
    """A verb: its handler, how many parameters it needs, whether it may come before registration."""

    verb: str
    handler: "Handler"
    params: int
    early: bool


def command(verb: str, params: int = 0, early: bool = False) -> Callable[[F], F]:
    """Mark a function (or a skill's method) as the handler of a verb."""

    def mark(function: F) -> F:
        setattr(function, _MARK, (verb, params, early))
        return function

    return mark


def table(*places: object) -> Mapping[str, Command]:
    """The commands of these modules and skills; a verb that exists already is refused."""
    commands: dict[str, Command] = {}
    for place in places:
        for handler, (verb, params, early) in marked(place, _MARK):
            if verb in commands:
                raise ValueError(f"the verb {verb} exists already")
            commands[verb] = Command(verb, handler, params, early)
    return commands


def marked(place: object, mark: str) -> Iterator[tuple[Any, Any]]:
    """The functions of a module, or the methods of an object, that have a mark, and what it says."""
    # Looked at without asking the object: a property of a skill may have no answer before its start.
    held = dict[str, object]()
    for each in (*map(vars, reversed(type(place).__mro__)), getattr(place, "__dict__", {})):
        held |= each
    for name in sorted(held):
        said = getattr(held[name], mark, None)
        if said is not None:
            yield getattr(place, name), said
