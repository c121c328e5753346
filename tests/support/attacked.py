"""An agent under attack: strings reach it every way there is, and what its model was given is looked at."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from mcp.client.client import Client as McpClient
from mcp_types import TextContent
from typer.testing import CliRunner

from culture.cli.app import app
from culture.clients.shared.daemon import AgentDaemon
from culture.clients.shared.desk import RequestFailed
from culture.clients.shared.skill import hook, shown
from culture.orchestrator.irc import split_requests
from culture.orchestrator.tasks import task_lines
from culture.orchestrator.tasks.task_lines import LineAuthor
from culture.protocol.text import name_in_prompt
from culture.protocol.vocabulary import Environment, UserClass
from culture.transport import Address, ClientIdentity, IRCTransport, NotSent
from culture.wiki.pages import Pages
from culture.wiki.tools import build
from tests.support.agents import agents_yaml, playbook, prompts, running
from tests.support.client import Client, registered
from tests.support.injection import forms, names_of, nicks_of, offences, offences_of_prompt
from tests.support.waiting import until

BOT, PERSON, PROGRAM = "spark-bot", "spark-eve", "spark-mallory"
EM = "spark-em"
ROOM = "#general"


class Attack:
    """One run: the agent, those who attack it, and what was found."""

    def __init__(self, daemon: AgentDaemon, home: Path, eve: IRCTransport, mallory: IRCTransport, raw: Client) -> None:
        self.daemon = daemon
        self.home = home
        self.eve = eve
        self.mallory = mallory
        self.raw = raw
        self.kinds = {PERSON: "human", PROGRAM: "bot", raw.nick: "human"}
        self.judged: list[str] = []
        self.found: list[str] = []
        self.figures: dict[str, int] = {}

    def count(self, what: str, number: int = 1) -> None:
        """So many more of these."""
        self.figures[what] = self.figures.get(what, 0) + number

    def look(self, text: str, way: str) -> None:
        """A text of others that a model was given."""
        self.count(f"{way} looked at")
        self.found += [f"{way}: {each}" for each in offences(text)]

    async def rooms(self, strings: Sequence[str]) -> None:
        """Messages of a person in a room."""
        for text in strings:
            for form in forms(text).values():
                await self._say(self.eve, f"@{BOT} {form}")
            await self._read()

    async def answers(self, strings: Sequence[str]) -> None:
        """The same of a program that may answer nothing and give no task, while a question is open."""
        question = asyncio.create_task(self.daemon.service.ask(ROOM, "Delete it?", 3600, ["yes", "no"]))
        await until(lambda: bool(self.daemon.questions.open and self.daemon.questions.open[0].msgids))
        for text in strings:
            for form in forms(text).values():
                await self._say(self.mallory, f"@{BOT} {form}")
                self._note_requests(form)
            await self._read()
        self.found += [] if self.daemon.questions.open else ["an answer: the question is closed"]
        question.cancel()
        await asyncio.wait([question])
        self.daemon.questions.abandon("")

    async def topics(self, strings: Sequence[str]) -> None:
        """Topics of a room the agent is in."""
        for text in strings:
            for form in forms(text).values():
                await self.raw.ask(f"TOPIC {ROOM} :{' '.join(form.split())[:300]}")
                self.count("topics")
        await self._read()

    async def nicks(self, strings: Sequence[str]) -> None:
        """Nicks: those that the server takes call the agent."""
        for text in strings:
            for nick in nicks_of(text):
                answer = await self.raw.ask(f"NICK {nick}")
                if any(line.verb == "NICK" for line in answer):
                    self.raw.nick = nick
                    self.kinds[nick] = "human"
                    await self.raw.ask(f"PRIVMSG {BOT} :hello")
                    self.count("nicks taken")
                else:
                    self.count("nicks refused")
            await self._rested()

    async def channels(self, strings: Sequence[str]) -> None:
        """Names of channels into which the agent is brought."""
        for text in strings:
            for name in names_of(text):
                if not any(line.verb == "JOIN" for line in await self.raw.ask(f"JOIN {name}")):
                    self.count("channels refused")
                    continue
                await self.daemon.service.join(name)
                await self.raw.ask(f"PRIVMSG {name} :@{BOT} hello")
                await self._rested()
                rows = await self.daemon.service.channels()
                self.look(shown.channels(rows), "lists of channels")
                await self.daemon.service.part(name_in_prompt(name))
                await self.raw.ask(f"PART {name}")
                self.count("channels taken")

    async def pages(self, strings: Sequence[str], project: str) -> None:
        """Pages of a wiki and their messages, read over MCP and by the command line as an agent does."""
        folder = self.home / "wiki" / project
        pages = await asyncio.to_thread(Pages.create, folder)
        for number, text in enumerate(strings):
            body = "\n".join(forms(text).values()).encode(errors="replace").decode()
            await asyncio.to_thread(pages.write, f"handoffs/p{number}", body, "", PERSON, text)
        async with McpClient(build(pages, lambda _: BOT)) as client:
            for number in range(len(strings)):
                for tool in ("wiki_read", "wiki_history"):
                    result = await client.call_tool(tool, {"page": f"handoffs/p{number}"})
                    for block in result.content:
                        self.look(block.text if isinstance(block, TextContent) else "", "pages over MCP")
        with _as_agent():
            for number in range(len(strings)):
                words = ["wiki", "read", f"handoffs/p{number}", "--project", project]
                done = await asyncio.to_thread(CliRunner().invoke, app, words)
                assert done.exit_code == 0, done.output
                self.look(done.stdout, "pages by command")

    async def hooks(self, strings: Sequence[str]) -> None:
        """What an agent does with foreign text, as its supervisor's model sees it, and what that says of it."""
        supervisor = self.daemon.supervision._supervisor
        for text in strings:
            for form in forms(text).values():
                event = {"hook_event_name": "PostToolUse", "tool_name": "WebFetch", "tool_input": {"url": form}}
                stop = {"hook_event_name": "Stop", "last_assistant_message": form}
                judged = len(self.judged)
                await self.daemon.service.activity([*hook.content(event), *hook.content(stop)], hear=False)
                await until(lambda judged=judged: len(self.judged) > judged)  # type: ignore[misc]
                await supervisor.rest()  # type: ignore[union-attr]
                self.count("hooks in prompts of the judge")
                self.daemon.socket.whisper("CORRECTION", form)
                for line in "\n".join(self.daemon.supervision.take()).split("\n"):
                    label, _, rest = line.partition("] ")
                    self.look(rest if label == "[SUPERVISOR/CORRECTION" else line, "whispers")
        for prompt in self.judged:
            # The record of turns has lines of its own: "[turn 1] begins", "  said: …".
            self.look(prompt, "prompts of the judge")

    def prompts_are_clean(self) -> None:
        """Look at every prompt that the model was given."""
        given = prompts(self.home / "work")
        self.count("prompts", len(given))
        for prompt in given:
            self.found += offences_of_prompt(prompt, self.kinds)
        self.count("messages in prompts", sum(prompt.count("\n  (class: ") for prompt in given))

    def nothing_was_obeyed(self) -> None:
        """No control word came of a text."""
        notes = self.daemon.notes
        self.found += ["a control word: pause"] if notes.paused else []
        self.found += ["a control word: stand down"] if notes.stood_down else []

    def _note_requests(self, text: str) -> None:
        """Only people and the EM give tasks: nothing of a program is one."""
        speakers = [LineAuthor(PROGRAM, kind) for kind in (UserClass.BOT, UserClass.UNKNOWN, UserClass.AGENT)]
        for request in split_requests(text):
            wanted = task_lines.parse(request)
            if wanted is not None and any(task_lines.may_request(speaker, wanted, EM, None) for speaker in speakers):
                self.found.append(f"a task: {request!r}")
            self.count("lines that begin with TASK:")

    async def _say(self, irc: IRCTransport, text: str) -> None:
        try:
            await irc.send_privmsg(ROOM, text.encode(errors="replace").decode())
            self.count("messages")
        except NotSent:
            self.count("messages refused")

    async def _read(self) -> None:
        """What the agent reads when it looks by itself."""
        await self._rested()
        try:
            page: Mapping[str, Any] = await self.daemon.service.read(ROOM, 500)
        except RequestFailed as refused:
            self.found.append(str(refused))
            return
        for message in page["messages"]:
            self.look(message["text"], "messages read")
        lines = shown.messages({**page, "remaining": 0, "withheld": 0}, ROOM).split("\n")
        strange = [line for line in lines if not line.startswith(("    ", "[20", "Nothing new"))]
        self.found += [f"a line of its own in irc_read: {line!r}" for line in strange]

    async def _rested(self) -> None:
        await self.raw.sync()
        await until(lambda: self.daemon.inbox.counts() == (0, 0) and not self.daemon.work.busy)


@contextmanager
def _as_agent() -> Iterator[None]:
    os.environ[Environment.NICK] = BOT
    try:
        yield
    finally:
        del os.environ[Environment.NICK]


@asynccontextmanager
async def attacked(home: Path, port: int) -> AsyncIterator[Attack]:
    """A real agent with a scripted model that everybody may wake, and those who attack it."""
    verdicts = home / "judge.json"
    verdicts.write_text('{"judge": []}', encoding="utf-8")
    supervisor = {"agent": "scripted", "playbook": str(verdicts), "eval_interval": 1}
    many = 1_000_000
    agent = {"nick": BOT, "playbook": playbook(home, [], [{"say": "fine"}]), "wake": "anybody", "post_output": "never"}
    loops = {"pair_turns_per_hour": many, "channel_turns_per_hour": many}
    config = agents_yaml(
        home, port, agent, rules={"supervisor": supervisor, "trust": {"humans": "always", "agents": "never"}, **loops}
    )
    eve = IRCTransport(Address("127.0.0.1", port), ClientIdentity(PERSON, bot=False), [ROOM])
    mallory = IRCTransport(Address("127.0.0.1", port), ClientIdentity(PROGRAM), [ROOM])
    async with registered(port, "spark-zoe") as raw, running(config, BOT) as daemon:
        await raw.join(ROOM)
        for each in (eve, mallory):
            await each.start()
        try:
            attack = Attack(daemon, home, eve, mallory, raw)

            async def judge(prompt: str) -> str:
                attack.judged.append(prompt)
                return "OK"

            daemon.supervision._supervisor.judge = judge  # type: ignore[union-attr, method-assign]
            yield attack
        finally:
            for each in (eve, mallory):
                await each.stop()
