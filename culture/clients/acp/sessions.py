"""Start, resume and close sessions of an ACP agent; set their model and mode."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import acp
from acp import RequestError
from acp.schema import (
    AgentCapabilities,
    Implementation,
    LoadSessionResponse,
    NewSessionResponse,
    ResumeSessionResponse,
    SessionConfigOptionSelect,
    SessionConfigSelectGroup,
)

from culture.clients.acp.answer import failure
from culture.clients.acp.options import AcpOptions
from culture.clients.acp.process import AcpProcess
from culture.clients.acp.quirks import program_of, quirks_of
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.programs import Found, note_version

log = logging.getLogger(__name__)

AUTH_REQUIRED = -32000
METHOD_NOT_FOUND = -32601
Begun = NewSessionResponse | LoadSessionResponse | ResumeSessionResponse
MOST_NAMED = 20


@dataclass(slots=True)
class AcpSessions:
    """Starts, resumes and closes the sessions of a running ACP agent."""

    link: AcpProcess
    nick: str
    directory: Path
    options: AcpOptions
    model: str | None
    _able: AgentCapabilities = field(default_factory=AgentCapabilities)
    _login_methods: str = ""

    @property
    def can_resume(self) -> bool:
        """Return whether the ACP agent can resume a session."""
        return bool(self._resumes or self._able.load_session)

    async def initialize(self) -> None:
        """Initialize the protocol: check its version, read capabilities and login methods.

        ``WrongConfiguration`` if the program speaks another version.
        """
        program, quirks = program_of(self.options.command), quirks_of(self.options.command)
        us = Implementation(name="culture", version="1")
        agent = self.link.agent
        hello = await self.link.talk(agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_info=us))
        if hello.protocol_version != acp.PROTOCOL_VERSION:
            raise WrongConfiguration(f"{program} speaks version {hello.protocol_version} of the protocol, we 1")
        self._able = hello.agent_capabilities or AgentCapabilities()
        self._login_methods = "; or ".join(method.description or method.name for method in hello.auth_methods or ())
        version = hello.agent_info.version if hello.agent_info is not None else None
        note_version(self.nick, Found(program, version, tried=quirks.tried))

    async def fresh(self) -> str:
        """Start a new session and return its id; ``WrongConfiguration`` if nobody is logged in."""
        try:
            begun = await self.link.talk(self.link.agent.new_session(**self._place()))
        except RequestError as error:
            if error.code != AUTH_REQUIRED:
                raise
            program, ways = program_of(self.options.command), self._login_methods
            raise WrongConfiguration(f"{program} is not logged in: {ways or 'see its documentation'}") from error
        await choose(self.link, begun.session_id, begun, self.model, self.options.mode)
        return begun.session_id

    async def resume(self, session: str) -> bool:
        """Resume the session with this id; return False if that is not possible."""
        if not self.can_resume:
            log.info("%s: the agent cannot resume sessions", self.nick)
            return False
        try:
            taken = await self._resume({"session_id": session, **self._place()})
        except RequestError as error:
            log.info("%s: cannot resume session %s: %s", self.nick, session, failure(error))
            return False
        await choose(self.link, session, taken, self.model, self.options.mode)
        return True

    async def _resume(self, place: dict[str, Any]) -> ResumeSessionResponse | LoadSessionResponse:
        """Resume a session and return the agent's response.

        The agent does not send the session's history again if it can resume without that. ``place``: session id,
        folder and MCP servers.
        """
        if self._resumes:
            try:
                return await self.link.talk(self.link.agent.resume_session(**place))
            except RequestError as error:
                # Qwen Code announces this and does not have it.
                if error.code != METHOD_NOT_FOUND or not self._able.load_session:
                    raise
        return await self.link.talk(self.link.agent.load_session(**place))

    async def leave(self, session: str) -> None:
        """Close a session that is no longer needed, if the agent supports closing."""
        able = self._able.session_capabilities
        if able is not None and able.close is not None:
            try:
                await self.link.talk(cast(Any, self.link.agent.close_session(session_id=session)))
            except RequestError as error:
                log.debug("%s: session %s was not closed: %s", self.nick, session, failure(error))

    @property
    def _resumes(self) -> bool:
        able = self._able.session_capabilities
        return able is not None and able.resume is not None

    def _place(self) -> dict[str, Any]:
        return {"cwd": str(self.directory.absolute()), "mcp_servers": list(self.options.mcp_servers)}


async def choose(link: AcpProcess, session: str, begun: Begun, model: str | None, mode: str | None) -> None:
    """Set a session's model and mode to the configured ones, if any.

    ``session``: its id; ``begun``: the agent's response to its start, which lists the models and modes that the agent
    offers. ``WrongConfiguration`` if a configured one is not among them.
    """
    if model is not None:
        await _set_choice(link, session, begun, "model", "model", _spellings(model))
    if mode is not None:
        await _set_choice(link, session, begun, "mode", "acp_mode", (mode,))


async def _set_choice(
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
