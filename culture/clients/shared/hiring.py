"""Help for an agent: it asks its team's orchestrator for another agent, where everybody can see it, and is told who."""

import asyncio
import re
from collections.abc import Callable, Mapping

from culture.clients.shared.desk import Hired, RequestFailed
from culture.config.agents import TeamPlace
from culture.config.team import ROLES
from culture.protocol.names import fold
from culture.protocol.vocabulary import ClientTag
from culture.transport import IRCTransport, Message, NotSent

PATIENCE = 100.0
"""How long the orchestrator may take, where the agent does not say."""
MOST_WAITING = 4
WORKERS = ROLES[2:]
_HIRED = re.compile(r"hired (\S+) as ")


def asked(role: str, text: str) -> str:
    """The line in which an agent asks."""
    return f"TASK: {role}: {text}"


def hired(nick: str, role: str) -> str:
    """The line in which an orchestrator says yes, in reply to the one that asked; every other reply is a refusal."""
    return f"hired {nick} as {role}"


class Hiring:
    """Asks, and hears the answers of the orchestrator and of nobody else."""

    def __init__(
        self, team: TeamPlace | None, transport: IRCTransport, tags: Callable[[], Mapping[str, str]] = dict
    ) -> None:
        self._team = team
        self._transport = transport
        self._tags = tags
        self._waiting = 0
        # An answer may come before we know the id of what it answers.
        self._replies: dict[str, str] = {}
        self._heard = asyncio.Event()

    def hear(self, message: Message) -> None:
        """Something was said; perhaps an answer."""
        if self._team is None or not self._waiting or fold(message.sender) != fold(self._team.orchestrator):
            return
        answers = message.tags.get(ClientTag.REPLY.value)
        if answers:
            self._replies[answers] = message.text
            self._heard.set()

    async def ask(self, role: str, text: str, timeout: float | None) -> Hired:
        """Ask for an agent; RequestFailed with the orchestrator's words when it says no."""
        if self._team is None:
            raise RequestFailed("you are in no team, so nobody can be hired: agents.yaml gives you no team")
        if role not in WORKERS:
            raise RequestFailed(f"{role!r} is no role; there are {', '.join(WORKERS)}")
        if self._waiting >= MOST_WAITING:
            raise RequestFailed(f"{self._waiting} such requests wait already")
        self._waiting += 1
        try:
            said = await self._ask(self._team, role, text, PATIENCE if timeout is None else timeout)
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._replies.clear()
        found = _HIRED.match(said)
        if found is None:
            raise RequestFailed(f"{self._team.orchestrator}: {said}")
        return {"nick": found[1], "role": role, "text": said}

    async def _ask(self, team: TeamPlace, role: str, text: str, timeout: float) -> str:
        try:
            async with asyncio.timeout(timeout):
                ids = await self._transport.send_privmsg(team.channel, asked(role, text), self._tags())
                return await self._reply(ids)
        except NotSent as refusal:
            raise RequestFailed(str(refusal)) from None
        except TimeoutError:
            raise RequestFailed(
                f"{team.orchestrator} has not answered within {timeout:g} s; what you asked for stands in "
                f"{team.channel}, so look there before you ask again"
            ) from None

    async def _reply(self, ids: list[str]) -> str:
        if not ids:
            raise RequestFailed("the server gives messages no ids, so the answer cannot be told from others")
        while True:
            for id in ids:
                if id in self._replies:
                    return self._replies.pop(id)
            self._heard.clear()
            await self._heard.wait()
