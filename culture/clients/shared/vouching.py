"""Who may make an agent work: the class of a sender, and the nicks of agents.yaml where a server tells no classes.

Whoever can put text into an agent's prompt runs code as the agent's owner, so text is let in only from senders whom
somebody vouches for. On a server of ours that is the server: it knows accounts, and says ``unknown`` of everybody
else, users behind links without authority and bots included. A server that knows no accounts vouches for nobody;
there the nicks of ``agents`` and ``people`` in agents.yaml count, for want of anything better.
"""

import logging
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Protocol

from culture.config.agents import AgentsConfig, Wake
from culture.config.errors import ConfigError
from culture.protocol.names import fold
from culture.protocol.vocabulary import UserClass
from culture.transport import IRCTransport

log = logging.getLogger(__name__)

NOBODY = "nobody here vouches for you"
PEOPLE_ONLY = "only people wake me"
_LET_IN: dict[Wake, frozenset[UserClass]] = {
    "humans": frozenset({UserClass.HUMAN}),
    "accounts": frozenset({UserClass.HUMAN, UserClass.AGENT}),
    "anybody": frozenset(UserClass),
}


def why_unvouched(kind: UserClass, wake: Wake, *, is_fellow: bool = False) -> str | None:
    """Why a sender of this class must not wake the agent, as it is told; None when it may.

    ``is_fellow``: an agent of the same configuration on a server where neither has an account.
    """
    kind = UserClass.AGENT if is_fellow and kind is UserClass.BOT else kind
    if kind in _LET_IN[wake]:
        return None
    return PEOPLE_ONLY if kind is UserClass.AGENT else NOBODY


class Sender(Protocol):
    """Somebody on IRC: a message's sender, or a member of a channel."""

    @property
    def nick(self) -> str:
        """Their nick."""

    @property
    def kind(self) -> UserClass:
        """Their class."""

    @property
    def account(self) -> str | None:
        """Their account."""


class Nicks(Collection[str]):
    """A list of nicks that is read anew whenever somebody looks."""

    def __init__(self, read: Callable[[], Collection[str]]) -> None:
        self._read = read

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __contains__(self, nick: object) -> bool:
        return isinstance(nick, str) and fold(nick) in map(fold, self._read())


class Company:
    """The agents and people of an agents.yaml: as it was loaded, and where its file is known as that says now.

    A team writes the file again whenever somebody is hired, while the daemons of the others run.
    """

    def __init__(
        self, config: AgentsConfig, file: Path | None = None, load: Callable[[Path], AgentsConfig] | None = None
    ) -> None:
        self._config = config
        self._file = file
        self._load = load
        self._version = _version(file)
        self.agents: Collection[str] = Nicks(self._agents)
        self.people: Collection[str] = Nicks(lambda: self._now().people)

    def _agents(self) -> list[str]:
        found = self._now().agents
        return [*(each.nick for each in found), *{each.team.orchestrator for each in found if each.team is not None}]

    def _now(self) -> AgentsConfig:
        version = _version(self._file)
        if self._file is not None and self._load is not None and version not in (None, self._version):
            self._version = version
            try:
                self._config = self._load(self._file)
            except ConfigError as wrong:
                log.warning("%s is not read again: %s", self._file, wrong)
        return self._config


def _version(file: Path | None) -> tuple[int, int, int] | None:
    """What changes whenever a file is written or replaced; None where there is none."""
    try:
        found = file.stat() if file is not None else None
    except OSError:
        return None
    return None if found is None else (found.st_ino, found.st_mtime_ns, found.st_size)


class Vouching:
    """Judges senders for one agent."""

    def __init__(self, wake: Wake, transport: IRCTransport, agents: Collection[str]) -> None:
        self._wake = wake
        self._transport = transport
        self._agents = agents

    def why_not(self, sender: Sender) -> str | None:
        """Why a sender must not wake the agent nor be read by it; None when they may."""
        return why_unvouched(sender.kind, self._wake, is_fellow=self._is_fellow(sender))

    def is_known(self, sender: Sender) -> bool:
        """Whether somebody vouches for a sender, though perhaps only people wake the agent."""
        return self.why_not(sender) in (None, PEOPLE_ONLY)

    def _is_fellow(self, sender: Sender) -> bool:
        """Where the agent has an account its fellows have one too, and whoever comes without is not one of them."""
        has_accounts = self._transport.view.account is not None or sender.account is not None
        return not has_accounts and sender.nick in self._agents
