"""Plays every sender of the table against running servers, and writes down what each achieved."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from culture.clients.shared.questions.model import Question
from culture.protocol.vocabulary import ClientTag
from tests.authority.senders import GENERAL, STANDUP, OnIRC, OnPage, Sender
from tests.authority.stage import STRICT, VOTING, Stage
from tests.support.agents import prompts
from tests.support.waiting import until
from tests.web.saying import shows

YES, NO, HELD, NO_WAY, REFUSED = "yes", "no", "held", "–", "refused"
COLUMNS = ("wakes", "answers", "votes", "permits", "controls", "tasks", "publishes", "reads", "verified")


class Results(NamedTuple):
    """What came of it all."""

    cells: dict[tuple[str, str], str]
    """What a sender achieved, by sender and column."""
    nicks: dict[str, str]
    """The nicks of the senders that were let in."""
    prompts: str
    """All that the agents were given."""


_FACT = ClientTag.FACT.value
_KNOWN = "build the east wing"


def play(folder: Path) -> Results:
    """Let all of them try everything once."""
    with pytest.MonkeyPatch.context() as patch:
        for name, place in (("CULTURE_HOME", folder / "home"), ("XDG_RUNTIME_DIR", folder / "run")):
            place.mkdir(mode=0o700)
            patch.setenv(name, str(place))
        patch.delenv("CULTURE_NICK", raising=False)
        return asyncio.run(_played(folder))


async def _played(folder: Path) -> Results:
    async with AsyncExitStack() as stack:
        stage = Stage(folder, stack)
        await stage.set_up()
        return await Acts(stage).perform()


class Acts:
    """The columns of the table, one after the other."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._ada = stage.ada
        self._present = {name: sender for name, sender in stage.senders.items() if sender is not None}

    async def perform(self) -> Results:
        """What each sender achieved; whoever was not let in achieves nothing."""
        acts: tuple[Callable[[], Awaitable[dict[str, str]]], ...] = (
            self._wake,
            partial(self._answer, STRICT),
            partial(self._answer, VOTING),
            self._permit,
            self._control,
            self._task,
            self._publish,
            self._read,
            self._approve,
        )
        cells = {}
        for column, act in zip(COLUMNS, acts, strict=True):
            achieved = await act()
            for name in self._stage.senders:
                cells[name, column] = achieved.get(name, REFUSED)
        nicks = {name: sender.nick for name, sender in self._present.items()}
        given = prompts(self._stage.daemons[STRICT].config.directory)
        return Results(cells, nicks, "\n".join(given))

    async def _wake(self) -> dict[str, str]:
        """Everybody calls the agent; what came before the call of a person is in a prompt by then, or never will be."""
        calls = {}
        for name, sender in self._present.items():
            calls[name] = await self._stage.said(sender, GENERAL, f"@{STRICT} wake up for {name}.")
        await self._ada.ask(f"PRIVMSG {GENERAL} :@{STRICT} the last call")
        daemon = self._stage.daemons[STRICT]
        work, inbox, held = daemon.config.directory, daemon.inbox, daemon.held
        await until(lambda: "the last call" in "".join(prompts(work)))
        given = "".join(prompts(work))

        def is_held(msgid: str) -> bool:
            return inbox.knows(msgid) and not held.is_released(msgid)

        return {
            name: YES if f"wake up for {name}." in given else HELD if is_held(call.tags["msgid"]) else NO
            for name, call in calls.items()
        }

    async def _answer(self, agent: str) -> dict[str, str]:
        """The agent asks for each; the sender says yes, and then a person does. The first that may decides."""
        found = {}
        for name, sender in self._present.items():
            asked = asyncio.create_task(self._stage.daemons[agent].questions.ask(GENERAL, f"what for {name}?", 60))
            answer = await self._answered(agent, sender, asked, "this")
            found[name] = YES if answer.by == sender.nick else NO
        return found

    async def _permit(self) -> dict[str, str]:
        """The sender says yes, and then a person says no."""
        found = {}
        for name, sender in self._present.items():
            tool = self._stage.daemons[STRICT].leave.permit("Bash", {"command": f"echo {name}"})
            permit = await self._answered(STRICT, sender, asyncio.create_task(tool), "no")
            found[name] = YES if permit.allowed else NO
        return found

    async def _answered(self, agent: str, sender: Sender, asked: asyncio.Task[Any], last: str) -> Any:
        """What the agent gets that asks: the sender speaks first, and a person after that."""
        question = await self._posted(agent)
        await self._stage.said(sender, GENERAL, f"@{agent} yes {question.id}")
        await self._ada.ask(f"PRIVMSG {GENERAL} :@{agent} {last} {question.id}")
        return await asked

    async def _posted(self, agent: str) -> Question:
        questions = self._stage.daemons[agent].questions
        await until(lambda: any(each.msgids for each in questions.open))
        [question] = questions.open
        return question

    async def _control(self) -> dict[str, str]:
        """The sender says pause; when a person's question for help is answered, that was obeyed or never will be."""
        notes, found = self._stage.daemons[STRICT].notes, {}
        for name, sender in self._present.items():
            await self._stage.said(sender, GENERAL, f"@{STRICT} pause")
            await self._told("help", "I understand")
            found[name] = YES if notes.paused else NO
            if notes.paused:
                await self._told("resume", "going on")
        return found

    async def _told(self, word: str, answer: str) -> None:
        self._ada.send(f"PRIVMSG {GENERAL} :@{STRICT} {word}")
        await self._ada.expect("NOTICE", self._ada.nick, where=lambda line: line.params[1].startswith(answer))

    async def _task(self) -> dict[str, str]:
        """What is said in the team's room is acted upon in order, the word of a person last."""
        for name, sender in self._present.items():
            await self._stage.said(sender, STANDUP, f"TASK: do it for {name}")
        await self._ada.ask(f"PRIVMSG {STANDUP} :TASK: the last one")
        taken: set[str] = set()

        def is_over() -> bool:
            taken.update(task.text for task in self._stage.team.context.store.state.tasks.values())
            return "the last one" in taken

        await until(is_over)
        return {name: YES if f"do it for {name}" in taken else NO for name in self._present}

    async def _publish(self) -> dict[str, str]:
        """A fact counts that our server tells others, also one of another server's user."""
        ways = {}
        for number, (name, sender) in enumerate(self._present.items()):
            fact = _escaped(json.dumps({"text": "done"}))
            ways[name] = await sender.ask(f"@{_FACT}={fact} LEDGER PUT task fact-{number}")
            # What is said after it on the same link arrives after it.
            await self._stage.said(sender, GENERAL, f"published for {name}")
        keys = _keys(await self._ada.ask("LEDGER GET task limit=500"))
        return {
            name: NO_WAY if ways[name] is None else YES if f"fact-{number}" in keys else NO
            for number, name in enumerate(self._present)
        }

    async def _read(self) -> dict[str, str]:
        """A fact of an agent of ours is read, on the page where that is the only way."""
        agent, found = self._stage.agent, {}
        fact = _escaped(json.dumps({"state": "working", "task": _KNOWN}))
        await agent.ask(f"@{_FACT}={fact} LEDGER PUT state now")
        await agent.say(GENERAL, "it is published")
        for name, sender in self._present.items():
            if isinstance(sender, OnIRC):
                # What was published before it is on every server to which it goes.
                await sender.client.expect("PRIVMSG", GENERAL, "it is published")
                answer = await sender.client.ask("LEDGER GET state")
                found[name] = YES if _KNOWN in "".join(line.tags.get(_FACT, "") for line in answer) else NO
            elif isinstance(sender, OnPage):
                found[name] = YES if _KNOWN in await shows(sender.browser, "/agents", _KNOWN) else NO
            else:
                found[name] = NO_WAY
        return found

    async def _approve(self) -> dict[str, str]:
        """An agent publishes that a person has approved, and names the sender's message; the verdict of the server."""
        agent, found = self._stage.agent, {}
        for number, (name, sender) in enumerate(self._present.items()):
            said = await self._stage.said(sender, GENERAL, f"@{agent.nick} yes, for {name}")
            fact = {"open": False, "outcome": "ANSWERED", "by": sender.nick, "class": "human", "human_confirmed": True}
            fact |= {"place": GENERAL, "choice": "yes", "asked": _now(), "answer": said.tags["msgid"]}
            line = (await agent.ask(f"@{_FACT}={_escaped(json.dumps(fact))} LEDGER PUT question q{number}"))[-1]
            found[name] = str(json.loads(line.tags[_FACT])["verified"]).lower()
        return found


def _keys(lines: Any) -> set[str]:
    return {word for line in lines if line.verb == "LEDGER" for word in line.params}


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\s").replace(";", "\\:")
