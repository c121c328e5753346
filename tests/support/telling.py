"""What `culture trace` tells of messages, held against what is known of them."""

import asyncio
import json
import os
import random
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from culture.protocol.names import owner
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from tests.support.agentstorm import EDGES, NAMES, SETTLING, AgentStorm, people_of
from tests.support.clock import sleep
from tests.support.fleet import agents_on
from tests.support.mesh import ROOT, Mesh, mesh
from tests.support.rumours import QUICK

STEPS = ("delivered", "injected", "answered")
Times = Mapping[str, Mapping[str, tuple[str, str]]]
"""Of each message when it came to which state, and with whom, as the ledgers have it."""
_LOOKS = 40
_STEP = re.compile(r"  (?P<at>[-\d]{10} [\d:.]{12}| {23})  (?P<state>\w+) +(?P<by>\S+)  on (?P<server>\S+)")


def people_on(mesh: Mesh, folder: Path) -> dict[str, str]:
    """Everybody of the storm gets an account, since only then their private words are theirs to read; the tokens."""
    tokens = {}
    for server in mesh.members:
        accounts = AccountStore(folder / server / "accounts.json", server)
        for nick in people_of(server):
            accounts.add(new_account(nick, UserClass.HUMAN, always_on=False))
            tokens[nick] = accounts.add_token(nick, "test")
            secret = folder / server / "secrets" / nick
            secret.write_text(tokens[nick], encoding="utf-8")
            secret.chmod(0o600)
    return tokens


@dataclass
class Telling:
    """Runs `culture trace` as the people who said the messages."""

    storm: AgentStorm
    folder: Path
    early: dict[str, list[list[str]]] = field(default_factory=dict)
    """What was told of messages while everything was being killed: the states, each time it was asked."""
    ahead: list[str] = field(default_factory=list)
    """What was told then to have happened later than it was told."""

    async def trace(self, msgid: str, *words: str) -> tuple[int, str]:
        """What one command prints, and its exit code."""
        sender, letter = self.storm.senders[msgid], self.storm.receipted[msgid]
        where = ("--in", letter.place) if letter.place.startswith("#") else ()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "culture", "trace", msgid, "--nick", sender, *where, *words),
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "CULTURE_HOME": str(self.folder / owner(sender)), "TZ": "UTC"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, remarks = await process.communicate()
        return process.returncode or 0, (out or remarks).decode()

    async def watch(self, pause: float) -> None:
        """Ask for stories while messages are on their way and servers die, until it is cancelled."""
        while True:
            await sleep(pause)
            if self.storm.receipted:
                msgid = self.storm.chance.choice(list(self.storm.receipted))
                code, out = await self.trace(msgid, "--json")
                if code == 0:
                    steps, now = json.loads(out)["steps"], datetime.now(UTC)
                    self.early.setdefault(msgid, []).append([step["state"] for step in steps])
                    late = [step for step in steps if step["at"] and datetime.fromisoformat(step["at"]) > now]
                    self.ahead += [f"{msgid}: {step}" for step in late]

    async def wrong(self, msgids: Iterable[str], times: Times) -> list[str]:
        """The messages of which something else is told than what happened, with what was told."""
        # Whoever enters a channel for the moment leaves it with all their sessions: one command of each at a time.
        left: dict[str, list[str]] = {}
        for msgid in msgids:
            left.setdefault(self.storm.senders[msgid], []).append(msgid)
        found: list[str] = []

        async def tell(theirs: list[str]) -> None:
            for msgid in theirs:
                (code, text), (other, data) = await self.trace(msgid), await self.trace(msgid, "--json")
                why = self._fault(msgid, times[msgid], text, data) if not (code or other) else f"exit {code}, {other}"
                found.extend([f"{msgid}: {why}\n{text}\n{data}"] if why else [])

        await asyncio.gather(*map(tell, left.values()))
        return found

    def wrong_early(self) -> list[str]:
        """Messages of which more was told than had happened, or in another order."""
        whole = ["said", "stored", *STEPS]
        told = [(msgid, states) for msgid, several in self.early.items() for states in several]
        others = [
            f"{msgid}: {states}" for msgid, states in told if states != [each for each in whole if each in states]
        ]
        return [*others, *self.ahead]

    @property
    def behind(self) -> int:
        """How often less was told than before: by a server that was killed, and had not heard again from its peers."""
        pairs = [pair for told in self.early.values() for pair in pairwise(told)]
        return sum(len(later) < len(before) for before, later in pairs)

    def _fault(self, msgid: str, times: Mapping[str, tuple[str, str]], text: str, data: str) -> str:
        """What is wrong with a story; empty when nothing is."""
        letter, sender = self.storm.receipted[msgid], self.storm.senders[msgid]
        story: dict[str, Any] = json.loads(data)
        said, steps = story["said"], story["steps"]
        if said is None:
            return "not even what was said"
        if (said["by"], said["place"], said["text"], said["to"]) != (sender, letter.place, letter.text, [letter.agent]):
            return "another message"
        home, away = owner(sender), owner(letter.agent)
        wanted = [("said", sender, home), ("stored", "", home), *((state, letter.agent, away) for state in STEPS)]
        if [(step["state"], step["by"], step["server"]) for step in steps] != wanted:
            return "other steps"
        moments = [datetime.fromisoformat(step["at"]) for step in steps if step["at"]]
        if moments != sorted(moments) or moments[1:] != [datetime.fromisoformat(times[state][0]) for state in STEPS]:
            return "other times"
        if story["waits"]:
            return "something is missing"
        return "" if self._is_same(text, msgid, story) else "the text is another than the data"

    def _is_same(self, text: str, msgid: str, story: Mapping[str, Any]) -> bool:
        said = story["said"]
        first, *lines = text.splitlines()
        found = [_STEP.fullmatch(line) for line in lines]
        return first == f"{msgid}  {said['place']}  <{said['by']}> {said['text']}" and [
            (each["at"].strip(), each["state"], each["by"], each["server"]) for each in found if each
        ] == [(_moment(step["at"]), step["state"], step["by"] or "-", step["server"]) for step in story["steps"]]


def _moment(at: str | None) -> str:
    return f"{datetime.fromisoformat(at):%Y-%m-%d %H:%M:%S.%f}"[:-3] if at else ""


async def ledgers(mesh: Mesh, tokens: Mapping[str, str], msgids: list[str]) -> list[Times]:
    """What the ledger of each server has of these messages; asked until it is whole and the same everywhere."""
    found: list[Times] = []
    for _ in range(_LOOKS):
        found = [await _ledger(mesh, server, tokens, msgids) for server in mesh.members]
        if all(each == found[0] for each in found) and all(set(each) == set(STEPS) for each in found[0].values()):
            break
        await sleep(0.5)
    return found


async def _ledger(mesh: Mesh, server: str, tokens: Mapping[str, str], msgids: list[str]) -> Times:
    found = {}
    nick = people_of(server)[0]
    async with mesh.client(server, nick, "message-tags", tokens[nick]) as reader:
        for msgid in msgids:
            rows = [line for line in await reader.ask(f"LEDGER GET receipt * key={msgid}") if line.verb == "LEDGER"]
            found[msgid] = {row.params[2].rpartition("/")[2]: (row.params[3], row.params[0]) for row in rows}
            reader.seen.clear()
    return found


async def told_right(
    folder: Path,
    messages: int,
    *,
    kills: int,
    chance: random.Random,
    told: int | None = None,
    pause: float = 0.1,
    watch: float | None = None,
) -> dict[str, int]:
    """A storm, and whether ledgers and command tell what happened in it; figures, or what is wrong."""
    async with mesh(folder, names=NAMES, edges=EDGES, federation=QUICK) as m:
        await m.linked()
        async with agents_on(m, folder) as agents:
            tokens = people_on(m, folder)
            storm = AgentStorm(m, agents, messages, chance, pause, tokens)
            telling = Telling(storm, folder)
            watching = [asyncio.create_task(telling.watch(watch))] if watch is not None else []
            try:
                await storm.rage(kills)
                await storm.settle(SETTLING)
            finally:
                for task in watching:
                    task.cancel()
                await asyncio.gather(*watching, return_exceptions=True)
            msgids = list(storm.receipted)
            assert len({letter.number for letter in storm.receipted.values()}) == messages
            found = await ledgers(m, tokens, msgids)
            lacking = [msgid for msgid in msgids if set(found[0][msgid]) != set(STEPS)]
            assert not lacking, [(msgid, storm.receipted[msgid], [each[msgid] for each in found]) for msgid in lacking]
            assert all(each == found[0] for each in found), "two ledgers differ"
            asked = msgids if told is None else chance.sample(msgids, told)
            wrong = [*await telling.wrong(asked, found[0]), *telling.wrong_early()]
            assert not wrong, f"{len(wrong)} stories are wrong:\n" + "\n".join(wrong[:5])
    return {
        "messages": messages,
        "receipted": len(msgids),
        "kills_of_daemons": storm.kills["daemons"],
        "kills_of_servers": storm.kills["servers"],
        "stories_right": len(asked),
        "stories_during_the_kills": sum(map(len, telling.early.values())),
        "of_these_less_than_before": telling.behind,
        "wrong": 0,
    }
