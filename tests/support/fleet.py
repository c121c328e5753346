"""Agents in processes of their own, and what they leave on disk: what they were given, and what became of it."""

import re
import shlex
import sqlite3
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass
from pathlib import Path

from culture.lib.process.orphans import end_all
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from tests.support.agents import DaemonProcess, agents_yaml, playbook, prompts
from tests.support.mesh import Mesh
from tests.support.waiting import until

CHANNELS = ("#build", "#review")
AGENTS_EACH = 2
READY = 60.0
_FACTS = re.compile(r"^  \(class: .*?; msgid: (?P<msgid>\S+); time: [^;)]*(?P<repeated>; repeated: )?", re.MULTILINE)
_READER = f"{shlex.quote(sys.executable)} -P -m culture.clients.shared.skill.irc_client read"
READS_THE_REST = {
    "when": r"^and \d+ more: irc_read",
    "steps": [
        {
            "run": {
                "command": "printf '%s\\n' {prompt} | sed -n 's/^and [0-9]* more: irc_read //p' |"
                f' while read -r place; do while {_READER} "$place" 500 > page.txt && grep -q "message-" page.txt; '
                "do cat page.txt >> read.txt; done; done",
                "timeout": 300,
            }
        },
        {"say": "done"},
    ],
}
"""What a prompt only counts is read, as an agent would, until nothing is left of it."""


@dataclass
class Agent:
    """One agent, where it lives, and what can be read there of it from outside."""

    nick: str
    home: Path
    daemon: DaemonProcess

    @property
    def work(self) -> Path:
        """The folder it works in."""
        return self.home / "work" / self.nick

    @property
    def was_ready(self) -> bool:
        """Whether it ever came to take prompts."""
        return "is ready" in self.daemon.log.read_text(encoding="utf-8")

    def states(self) -> dict[str, str]:
        """How far each message has come, as the inbox on disk has it."""
        file = self.home / "inbox" / f"{self.nick}.db"
        if not file.exists():
            return {}
        with (
            closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as inbox,
            suppress(sqlite3.OperationalError),
        ):
            return dict(inbox.execute("SELECT msgid, state FROM messages"))
        return {}

    def token(self) -> str | None:
        """What its processes carry."""
        file = self.home / "inbox" / f"{self.nick}.db"
        with closing(sqlite3.connect(file)) as inbox, suppress(sqlite3.OperationalError):
            row = inbox.execute("SELECT value FROM notes WHERE key = 'token'").fetchone()
            return row[0] if row else None
        return None

    def prompts(self) -> list[str]:
        """All that it was given."""
        return prompts(self.work)

    def shown(self) -> Iterator[tuple[str, bool]]:
        """The messages that it saw in full, in the order of its prompts: the id, and whether marked as repeated."""
        for prompt in self.prompts():
            for found in _FACTS.finditer(prompt):
                yield found["msgid"], found["repeated"] is not None

    def read(self) -> str:
        """All that it fetched by irc_read."""
        file = self.work / "read.txt"
        return file.read_text(encoding="utf-8") if file.exists() else ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """It has begun to start; in the end it is killed, with all that it left."""
        await self.daemon.start()
        try:
            yield
        finally:
            await self.daemon.kill()
            if (token := self.token()) is not None:
                await end_all(token, grace=0)


def agent_at(nick: str, home: Path, run: Path) -> Agent:
    """An agent of the agents.yaml in this home, with its socket in the other folder."""
    return Agent(nick, home, DaemonProcess(nick, home, {"XDG_RUNTIME_DIR": str(run)}))


@asynccontextmanager
async def agents_on(mesh: Mesh, folder: Path) -> AsyncIterator[list[Agent]]:
    """Two agents on each server, each in a process of its own, all of them ready."""
    run = folder / "run"
    run.mkdir(mode=0o700)
    async with AsyncExitStack() as stack:
        made = [agent for server in mesh.members for agent in _settled(mesh, folder, server, run)]
        for agent in made:
            await stack.enter_async_context(agent.running())
        # Before the first start nothing is missed; from then on everything counts.
        await until(lambda: all(agent.was_ready for agent in made), "not every agent is ready", patience=READY)
        yield made


def _settled(mesh: Mesh, folder: Path, server: str, run: Path) -> list[Agent]:
    """The agents of one server: accounts, secrets, configuration. They share its home, as on a machine of its own."""
    home = folder / server
    nicks = [f"{server}-a{number}" for number in range(AGENTS_EACH)]
    accounts = AccountStore(home / "accounts.json", server)
    secrets = home / "secrets"
    secrets.mkdir(mode=0o700)
    # Long enough that some of the kills fall into a turn.
    book = playbook(home, [READS_THE_REST], [{"wait": 0.1}, {"say": "done"}])
    for nick in nicks:
        (home / "work" / nick).mkdir(parents=True)
        accounts.add(new_account(nick, UserClass.AGENT, always_on=True))
        (secrets / nick).write_text(accounts.add_token(nick, "daemon"), encoding="utf-8")
        (secrets / nick).chmod(0o600)
    described = [
        {"nick": nick, "channels": list(CHANNELS), "playbook": book, "directory": str(home / "work" / nick)}
        for nick in nicks
    ]
    agents_yaml(home, mesh.members[server].port, *described)
    return [agent_at(nick, home, run) for nick in nicks]
