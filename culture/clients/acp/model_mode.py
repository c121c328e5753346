"""Set the model and the mode of a session, from those that the agent offers."""

import logging
from collections.abc import Iterator, Sequence

from acp import RequestError
from acp.schema import (
    LoadSessionResponse,
    NewSessionResponse,
    ResumeSessionResponse,
    SessionConfigOptionSelect,
    SessionConfigSelectGroup,
)

from culture.clients.acp.process import AcpProcess
from culture.clients.shared.errors import WrongConfiguration

log = logging.getLogger(__name__)

Begun = NewSessionResponse | LoadSessionResponse | ResumeSessionResponse
MOST_NAMED = 20


async def choose(link: AcpProcess, session: str, begun: Begun, model: str | None, mode: str | None) -> None:
    """Set a session's model and mode to the configured ones, if any.

    ``session``: its id; ``begun``: the agent's response to its start, which lists the models and modes that the agent
    offers. ``WrongConfiguration`` if a configured one is not among them.
    """
    if model is not None:
        await _choose(link, session, begun, "model", "model", _spellings(model))
    if mode is not None:
        await _choose(link, session, begun, "mode", "acp_mode", (mode,))


async def _choose(
    link: AcpProcess, session: str, begun: Begun, what: str, setting: str, spellings: Sequence[str]
) -> None:
    option = _option(begun, what)
    offered = list(_values(option)) if option is not None else _modes(begun) if what == "mode" else []
    wanted = next((each for each in spellings if each in offered), spellings[0])
    try:
        if option is not None:
            if option.current_value != wanted:
                await link.talk(link.agent.set_config_option(config_id=option.id, session_id=session, value=wanted))
        elif offered:
            await link.talk(link.agent.set_session_mode(session_id=session, mode_id=wanted))
        else:
            log.warning("the agent offers no choice of %s: %s is ignored", what, wanted)
    except RequestError as error:
        names = ", ".join(offered[:MOST_NAMED])
        raise WrongConfiguration(
            f"{setting}: the agent does not take {wanted!r} ({error}); it offers {names}"
        ) from error


def _spellings(model: str) -> tuple[str, ...]:
    """Return the spellings of a model's name: as configured, and without the provider."""
    bare = model.partition("/")[2]
    return (model, bare) if bare else (model,)


def _option(begun: Begun, what: str) -> SessionConfigOptionSelect | None:
    """Return the session option with the id or, failing that, the category ``what``; or None.

    ``begun``: the agent's response to the session's start, which lists the options.
    """
    selects = [each for each in begun.config_options or () if isinstance(each, SessionConfigOptionSelect)]
    named = [each for each in selects if each.id == what]
    return next(iter([*named, *(each for each in selects if each.category == what)]), None)


def _values(option: SessionConfigOptionSelect) -> Iterator[str]:
    for each in option.options:
        if isinstance(each, SessionConfigSelectGroup):
            yield from (inner.value for inner in each.options)
        else:
            yield each.value


def _modes(begun: Begun) -> list[str]:
    return [mode.id for mode in begun.modes.available_modes] if begun.modes is not None else []
