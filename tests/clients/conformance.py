"""What every backend's runner must do, as tests to inherit.

A backend's test class inherits those of the classes below that concern it, and gives them a ``Kit``::

    class TestMine(RunnerContract, ProcessContract, QueuedContract):
        @pytest.fixture
        def kit(self, tmp_path): ...

``RunnerContract`` is for all. ``ProcessContract`` is for agents that are processes, ``QueuedContract`` for those that
subclass QueuedRunner, ``ResumeContract``, ``ClearContract`` and ``CompactContract`` for those that ``can`` do that,
``PermitContract`` for those that can be made to ask before they use a tool, ``McpContract`` for those whose programs
take tools from MCP servers, and ``WholeContract`` for those whom all of it concerns.

Tests marked ``matrix`` note what they see, for the table of docs/clients/backends.md.
"""

import asyncio
import os
import re
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from culture.clients.shared.base import AgentRunnerBase
from culture.clients.shared.queued import QueuedRunner
from culture.clients.shared.turn import CLEAR, COMPACT, Can, Permit, Turn
from culture.lib.process.orphans import carrying, end_all, new_token
from culture.protocol.vocabulary import Environment
from tests.support import marmot
from tests.support.model import Model
from tests.support.seen import seen
from tests.support.waiting import PATIENCE, until


class Kit(ABC):
    """How to have a backend made, and which prompts make it do what. ``environment`` goes into every RunnerSetup."""

    tells_usage = True
    """Whether its program says what a turn has used."""

    def __init__(self, folder: Path, model: Model | None = None) -> None:
        self.folder = folder
        self.model = model
        self.token = new_token()
        self.environment = {Environment.NICK.value: "spark-agent", Environment.TOKEN.value: self.token}

    @abstractmethod
    def make(self, resume: str | None = None) -> AgentRunnerBase:
        """A runner that was not started."""

    def say(self, text: str) -> str:
        """Answers with exactly this text."""
        return f"[[say {text}]]"

    def run(self, command: str) -> str:
        """Runs a shell command to its end, then says ``done``."""
        return f"[[bash {command}]] [[say done]]"

    def crash(self) -> str:
        """The process ends by itself, and not with 0."""
        raise NotImplementedError

    def fail(self) -> str:
        """The model's API answers with an error."""
        raise NotImplementedError

    def use(self, read: int, written: int) -> str:
        """Answers in one call of the model, which costs so many tokens."""
        return f"[[usage {read} {written} 0 0]] [[say used]]"

    def hang(self, begun: Path) -> str:
        """Makes a file, then waits for its model for ever."""
        return f"[[bash touch {begun}]] [[hang]]"

    def asking(self) -> QueuedRunner:
        """A runner that asks before it runs a command."""
        raise NotImplementedError

    def add_mcp(self, name: str, command: list[str]) -> None:
        """Write an MCP server into the program's own settings."""
        raise NotImplementedError

    def busy_until(self, path: Path) -> str:
        """Works until the file is there, then says ``done``."""
        return self.run(f"until test -e {path}; do sleep 0.05; done")


class Record:
    """What a runner told; waiting for facts."""

    def __init__(self, runner: AgentRunnerBase) -> None:
        self.messages: list[dict[str, Any]] = []
        self.exits: list[int] = []
        self.turns: list[Turn] = []
        self._news = asyncio.Condition()
        runner.on_message = self._on_message
        runner.on_exit = self._on_exit
        if isinstance(runner, QueuedRunner):
            runner.on_turn = self._on_turn

    @property
    def texts(self) -> list[str]:
        """Everything that was said."""
        return [block["text"] for block in self.blocks("text")]

    def blocks(self, kind: str) -> Iterator[dict[str, Any]]:
        """The blocks of one kind."""
        for message in self.messages:
            yield from (block for block in message["content"] if block["type"] == kind)

    async def until(self, fact: Callable[[], object]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(fact)

    async def said(self, *texts: str) -> None:
        """Wait until as many texts were given, and be sure that they are these."""
        await self.until(lambda: len(self.texts) >= len(texts) or self.exits)
        assert self.texts == list(texts)

    async def exited(self) -> int:
        """Wait for the exit and give its code."""
        await self.until(lambda: self.exits)
        return self.exits[0]

    async def _on_message(self, message: dict[str, Any]) -> None:
        await self._note(self.messages, message)

    async def _on_exit(self, code: int) -> None:
        await self._note(self.exits, code)

    async def _on_turn(self, turn: Turn) -> None:
        await self._note(self.turns, turn)

    async def _note(self, into: list[Any], fact: object) -> None:
        async with self._news:
            into.append(fact)
            self._news.notify_all()


async def bounded(runner: AgentRunnerBase) -> None:
    """Stop a runner, which must not take forever."""
    async with asyncio.timeout(PATIENCE):
        await runner.stop()


async def there(path: Path) -> None:
    """Wait until a file is there, which an agent's command makes."""
    await until(path.exists)


def programs(token: str) -> list[int]:
    """The processes of the agent that the runner itself has started, and not what those have started."""
    return [pid for pid in carrying(token) if f"PPid:\t{os.getpid()}\n" in _read(pid, "status")]


def processes(token: str) -> dict[int, str]:
    """The agent's processes that live, with their command lines."""
    return {pid: _read(pid, "cmdline").replace("\0", " ") for pid in carrying(token)}


def _read(pid: int, what: str) -> str:
    try:
        return Path(f"/proc/{pid}/{what}").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


class RunnerContract:
    """The contract itself: what the daemon relies on with any backend."""

    @pytest.mark.requirement("G01", "G03", "G04")
    async def test_it_runs_from_start_to_stop(self, kit: Kit) -> None:
        runner = kit.make()
        record = Record(runner)
        assert not runner.is_running()
        await runner.start()
        assert runner.is_running()
        assert record.exits == []
        await bounded(runner)
        assert not runner.is_running()
        assert record.exits == [0]
        await bounded(runner)
        assert record.exits == [0], "a second stop tells nothing more"

    @pytest.mark.requirement("G02")
    async def test_nobody_needs_to_listen(self, kit: Kit) -> None:
        runner = kit.make()
        assert (runner.on_message, runner.on_exit) == (None, None)
        await runner.start(kit.run(f"touch {kit.folder}/heard"))
        await there(kit.folder / "heard")
        await bounded(runner)
        assert not runner.is_running()

    @pytest.mark.requirement("G03", "G05")
    async def test_the_initial_prompt_comes_first_and_others_wait_while_senders_do_not(self, kit: Kit) -> None:
        runner, go = kit.make(), kit.folder / "go"
        record = Record(runner)
        await runner.start(kit.busy_until(go))
        for text in ("one", "two", "three"):
            await runner.send_prompt(kit.say(text))
        assert runner.is_running()
        assert record.texts == []
        go.touch()
        await record.said("done", "one", "two", "three")
        await bounded(runner)

    @pytest.mark.requirement("G01", "G03", "G06")
    async def test_what_it_says_has_the_form_of_the_contract(self, kit: Kit) -> None:
        runner = kit.make()
        record = Record(runner)
        await runner.start(kit.say("a «text» of\ntwo lines"))
        await record.said("a «text» of\ntwo lines")
        assert runner.session_id is None or runner.session_id, "a session has a name or is none"
        await bounded(runner)
        for message in record.messages:
            assert message.keys() == {"type", "model", "content"}
            assert message["type"] == "assistant"
            assert isinstance(message["model"], str)
            assert [block["type"] for block in message["content"] if block["type"] not in _BLOCKS] == []
            for block in message["content"]:
                assert {key: type(block[key]) for key in _BLOCKS[block["type"]]} == _BLOCKS[block["type"]]

    @pytest.mark.requirement("G04", "G08")
    async def test_stop_breaks_work_off_and_it_can_be_started_again(self, kit: Kit) -> None:
        """What was queued before the stop does not come again: the daemon gives it once more if it must be."""
        runner, begun = kit.make(), kit.folder / "begun"
        record = Record(runner)
        await runner.start(kit.run(f"touch {begun}; sleep 600"))
        await runner.send_prompt(kit.say("never"))
        await there(begun)
        await bounded(runner)
        assert not runner.is_running()
        assert record.exits == [0]
        assert "never" not in record.texts
        assert carrying(kit.token) == []
        del record.exits[:], record.messages[:]
        await runner.start(kit.say("new"))
        assert runner.is_running()
        await record.said("new")
        await bounded(runner)
        assert record.exits == [0]


_BLOCKS: dict[str, dict[str, type]] = {
    "text": {"text": str},
    "tool_use": {"id": str, "name": str, "input": dict},
    "thinking": {"thinking": str},
    "tool_result": {"tool_use_id": str, "content": str, "is_error": bool, "digest": str},
}


class ProcessContract:
    """For agents that are processes: they can die, and must not be left behind."""

    @pytest.mark.requirement("G07")
    async def test_being_killed_in_a_turn_is_a_crash(self, kit: Kit) -> None:
        runner, begun = kit.make(), kit.folder / "begun"
        record = Record(runner)
        await runner.start(kit.run(f"touch {begun}; sleep 600"))
        await there(begun)
        assert await end_all(kit.token, grace=0) > 0
        assert await record.exited() != 0
        assert not runner.is_running()
        await bounded(runner)
        assert len(record.exits) == 1

    @pytest.mark.requirement("G07", "G08")
    async def test_a_crash_is_told_once_and_it_works_again_afterwards(self, kit: Kit) -> None:
        runner = kit.make()
        record = Record(runner)
        await runner.start(kit.crash())
        assert await record.exited() != 0
        assert not runner.is_running()
        await bounded(runner)
        assert len(record.exits) == 1
        del record.exits[:], record.messages[:]
        await runner.start(kit.say("here again"))
        assert runner.is_running()
        await record.said("here again")
        await bounded(runner)
        assert record.exits == [0]

    @pytest.mark.requirement("G08")
    async def test_it_may_be_cleaned_up_as_soon_as_it_is_told(self, kit: Kit) -> None:
        runner = kit.make()
        record = Record(runner)
        told, cleaned = runner.on_exit, asyncio.Event()

        async def clean_up(code: int) -> None:
            await runner.stop()
            cleaned.set()
            assert told is not None
            await told(code)

        runner.on_exit = clean_up
        await runner.start(kit.crash())
        assert await record.exited() != 0
        assert cleaned.is_set()
        await bounded(runner)
        assert len(record.exits) == 1

    @pytest.mark.fault("E6")
    @pytest.mark.parametrize("ending", ["stop", "crash"])
    async def test_no_process_is_left(self, kit: Kit, ending: str) -> None:
        runner, begun = kit.make(), kit.folder / "begun"
        record = Record(runner)
        orphan = f"(setsid sh -c 'touch {begun}; exec sleep 600' >/dev/null 2>&1 </dev/null &)"
        # Some programs end what a command leaves in its group: it is elsewhere before the command ends.
        await runner.start(kit.run(f"{orphan}; until test -e {begun}; do sleep 0.05; done"))
        await there(begun)
        await record.until(lambda: "done" in record.texts)
        assert carrying(kit.token) != []
        if ending == "crash":
            await runner.send_prompt(kit.crash())
            await record.exited()
        await bounded(runner)
        assert carrying(kit.token) == []


class QueuedContract:
    """For subclasses of QueuedRunner: a turn has an end, and what it used is known."""

    @pytest.mark.matrix
    @pytest.mark.requirement("G05")
    async def test_every_prompt_is_one_turn_with_its_own_figures(self, kit: Kit) -> None:
        """Differences, where the program tells a running total; a program that tells nothing gives none."""
        runner, so_far = queued(kit), list[int]()
        record = Record(runner)
        runner.on_usage = lambda tokens, cost_usd: so_far.append(tokens)
        await runner.start(kit.use(40_000, 100))
        await runner.send_prompt(kit.use(20_000, 50))
        await runner.send_prompt(kit.run("true"))
        await runner.send_prompt(kit.say("four"))
        await record.until(lambda: len(record.turns) == 4)
        assert [turn.text for turn in record.turns] == ["used", "used", "done", "four"]
        assert [bool(turn.tools) for turn in record.turns] == [False, False, True, False]
        assert [turn.error for turn in record.turns] == ["", "", "", ""]
        assert not runner.busy
        await bounded(runner)
        first, second = record.turns[:2]
        if kit.tells_usage:
            assert 40_100 <= first.tokens < 60_000
            assert 20_050 <= second.tokens < 40_000
            assert first.cost_usd >= second.cost_usd >= 0
        else:
            assert (first.tokens, second.tokens) == (0, 0)
        seen(
            runner,
            usage=_told(first.tokens) + (", in the turn" if so_far else ""),
            cost=_told(first.cost_usd),
            context=_told(first.context_pct is not None),
            **{can.name.lower(): "no" for can in (Can.RESUME, Can.COMPACT, Can.CLEAR) if can not in runner.can},
        )

    @pytest.mark.matrix
    @pytest.mark.requirement("G06")
    async def test_a_tool_is_told_when_it_is_called_with_its_result_and_a_whisper_then_is_taken_once_if_at_all(
        self, kit: Kit
    ) -> None:
        runner, go, whispers = queued(kit), kit.folder / "go", list[str]()
        record = Record(runner)

        def take() -> list[str]:
            taken, whispers[:] = whispers[:], []
            return taken

        runner.take_whispers = take
        await runner.start(kit.run(f"until test -e {go}; do sleep 0.05; done; echo marmots=$((20+1))"))
        await record.until(lambda: list(record.blocks("tool_use")))
        assert runner.busy
        [call] = record.blocks("tool_use")
        assert str(go) in str(call["input"])
        whispers.append("[SUPERVISOR/CORRECTION] mind the marmot")
        go.touch()
        await record.until(lambda: record.turns)
        assert record.turns[0].text == "done"
        [result] = record.blocks("tool_result")
        assert (result["tool_use_id"], result["is_error"]) == (call["id"], False)
        assert "marmots=21" in result["content"]
        if not whispers and kit.model is not None:
            heard = [request.everything.count("mind the marmot") for request in kit.model.journal.requests]
            assert heard[0] == 0 and max(heard) == 1
        seen(runner, whisper="next irc_* call or prompt" if whispers else "after a tool")
        await bounded(runner)

    async def test_a_failure_of_the_model_or_a_turn_broken_off_is_no_crash(self, kit: Kit) -> None:
        runner = queued(kit)
        record = Record(runner)
        await runner.start()
        await fails_and_goes_on(kit, runner, record)
        await breaks_off_and_goes_on(kit, runner, record)
        await bounded(runner)

    @pytest.mark.requirement("G07")
    @pytest.mark.parametrize("moment", ["idle", "in a model call", "in a tool"])
    async def test_its_program_is_killed(self, kit: Kit, moment: str) -> None:
        """The program alone: what that has started may live on and hold its pipes, until the runner is stopped."""
        runner, begun = queued(kit), kit.folder / "begun"
        record = Record(runner)
        await runner.start(self._until_then(kit, moment, begun))
        if moment == "idle":
            await record.until(lambda: record.turns)
        else:
            await there(begun)
            if moment == "in a model call" and kit.model is not None:
                await kit.model.journal.arrival("[[hang]]", results=1)
        for pid in programs(kit.token):
            os.kill(pid, signal.SIGKILL)
        assert await record.exited() != 0
        assert not runner.is_running()
        await bounded(runner)
        assert len(record.exits) == 1
        assert carrying(kit.token) == []

    @staticmethod
    def _until_then(kit: Kit, moment: str, begun: Path) -> str:
        match moment:
            case "idle":
                return kit.say("hello")
            case "in a tool":
                return kit.run(f"touch {begun}; sleep 600")
            case _:
                return kit.hang(begun)

    async def test_a_turn_that_was_taken_counts_though_the_agent_dies(self, kit: Kit) -> None:
        runner, counted = queued(kit), asyncio.Event()
        record = Record(runner)

        async def killing(turn: Turn) -> None:
            assert await end_all(kit.token, grace=0) > 0
            async with asyncio.timeout(PATIENCE):
                while runner.is_running():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0)
            assert record.exits == []
            counted.set()

        runner.on_turn = killing
        await runner.start(kit.say("hello"))
        await runner.send_prompt(kit.say("never"))
        assert await record.exited() != 0
        assert counted.is_set()
        await bounded(runner)
        assert record.texts == ["hello"]

    async def test_stopping_or_interrupting_when_there_is_nothing_is_harmless(self, kit: Kit) -> None:
        runner = queued(kit)
        record = Record(runner)
        await runner.start()
        await runner.interrupt()
        before = runner.last_event
        await runner.send_prompt(kit.say("hello"))
        await record.until(lambda: record.turns)
        assert runner.last_event > before, "a sign of life is noted"
        assert (record.turns[0].text, record.turns[0].interrupted) == ("hello", False)
        await bounded(runner)
        await runner.interrupt()
        assert record.exits == [0]

    @pytest.mark.requirement("G08")
    async def test_it_may_be_stopped_as_soon_as_a_turn_is_over(self, kit: Kit) -> None:
        runner = queued(kit)
        record = Record(runner)

        async def stopping(turn: Turn) -> None:
            await runner.stop()

        runner.on_turn = stopping
        await runner.start(kit.say("hello"))
        await runner.send_prompt(kit.say("never"))
        assert await record.exited() == 0
        assert record.texts == ["hello"]
        assert not runner.is_running()


class ResumeContract:
    """For those that can take up an earlier session."""

    @pytest.mark.matrix
    @pytest.mark.requirement("G08", "G19")
    @pytest.mark.parametrize("ending", ["stop", "crash"])
    async def test_a_session_is_taken_up_again(self, kit: Kit, ending: str) -> None:
        runner = kit.make()
        record = Record(runner)
        await runner.start(kit.say("hello"))
        await record.said("hello")
        await is_taken_up_again(kit, runner, record, ending)

    @pytest.mark.requirement("G08")
    async def test_without_that_it_begins_anew(self, kit: Kit) -> None:
        sessions = set()
        for _ in range(2):
            runner = kit.make()
            record = Record(runner)
            await runner.start(kit.say("hello"))
            await record.said("hello")
            sessions.add(runner.session_id)
            await bounded(runner)
        assert len(sessions) == 2


class ClearContract:
    """For those that can begin anew in the same process."""

    @pytest.mark.matrix
    async def test_clear_begins_a_new_session_and_a_slash_in_what_people_write_is_text(self, kit: Kit) -> None:
        runner = queued(kit, Can.CLEAR)
        record = Record(runner)
        await runner.start(kit.say("hello"))
        await record.until(lambda: record.turns)
        session = runner.session_id
        for prefix in ("/clear ", " /clear\n", "[IRC DM] <spark-ori> /clear\n", "/nonsense "):
            (turn,) = await turns(record, runner, prefix + kit.say("only text"))
            assert (turn.text, runner.session_id) == ("only text", session), prefix
        await clears(runner, record)
        await bounded(runner)


class CompactContract:
    """For those that can shorten their own context."""

    @pytest.mark.matrix
    async def test_compact_shortens_and_keeps_the_session(self, kit: Kit) -> None:
        runner = queued(kit, Can.COMPACT)
        record = Record(runner)
        await runner.start()
        await compacts(kit, runner, record)
        await bounded(runner)


class PermitContract:
    """For those that can be made to ask before they use a tool."""

    @pytest.mark.matrix
    async def test_what_is_not_allowed_is_not_done_and_what_is_allowed_is(self, kit: Kit) -> None:
        runner = kit.asking()
        record, asked = Record(runner), is_asked(runner)
        await runner.start()
        await asks_and_obeys(kit, runner, record, asked)
        await bounded(runner)


class McpContract:
    """For programs that take tools from MCP servers in their own settings; the kit has a model."""

    @pytest.mark.matrix
    async def test_it_uses_a_tool_of_an_mcp_server(self, kit: Kit) -> None:
        add_marmot(kit)
        runner = queued(kit)
        record = Record(runner)
        await runner.start()
        await uses_marmot(kit, runner, record)
        await bounded(runner)


class WholeContract(
    RunnerContract,
    ProcessContract,
    QueuedContract,
    ResumeContract,
    ClearContract,
    CompactContract,
    PermitContract,
    McpContract,
):
    """All of it."""


# What a running agent goes through, as steps: where a start is costly, one after the other in one session.


async def turns(record: Record, runner: QueuedRunner, *prompts: str) -> list[Turn]:
    """The turns that these prompts become."""
    del record.turns[:]
    for prompt in prompts:
        await runner.send_prompt(prompt)
    await record.until(lambda: len(record.turns) == len(prompts) or record.exits)
    assert record.exits == []
    return list(record.turns)


async def fails_and_goes_on(kit: Kit, runner: QueuedRunner, record: Record) -> None:
    """A failure of the model is no answer and no crash."""
    failed, better = await turns(record, runner, kit.fail(), kit.say("better now"))
    assert failed.error
    assert [failed.text, better.text] == ["", "better now"]


async def breaks_off_and_goes_on(kit: Kit, runner: QueuedRunner, record: Record) -> None:
    """A turn can be broken off, and the next is taken."""
    begun = kit.folder / "begun"
    del record.turns[:]
    await runner.send_prompt(kit.run(f"touch {begun}; sleep 600"))
    await runner.send_prompt(kit.say("next"))
    await there(begun)
    await runner.interrupt()
    await record.until(lambda: len(record.turns) == 2)
    assert [turn.interrupted for turn in record.turns] == [True, False]
    assert record.turns[1].text == "next"
    assert runner.is_running()
    # Its command ends with it; what the program itself consists of stays.
    await until(lambda: not any("sleep 600" in command for command in processes(kit.token).values()))


async def clears(runner: QueuedRunner, record: Record) -> None:
    """A new session in the same process."""
    session = runner.session_id
    await turns(record, runner, CLEAR)
    assert runner.session_id not in (None, session)
    seen(runner, clear="yes")


async def compacts(kit: Kit, runner: QueuedRunner, record: Record) -> None:
    """A shorter context, and the same session."""
    before = await turns(record, runner, kit.say("hello"))
    session = runner.session_id
    after = await turns(record, runner, COMPACT, kit.say("still here"))
    assert [turn.compacted for turn in (*before, *after)] == [False, True, False]
    assert after[1].text == "still here"
    assert runner.session_id == session
    seen(runner, compact="yes")


async def is_taken_up_again(kit: Kit, runner: AgentRunnerBase, record: Record, ending: str) -> None:
    """It ends, and the next has its session."""
    session = await ends(kit, runner, record, ending)
    later = kit.make(resume=session)
    await goes_on(kit, later, session, ending)
    await bounded(later)


async def ends(kit: Kit, runner: AgentRunnerBase, record: Record, ending: str) -> str:
    """It crashes or is stopped; the session that it had."""
    if ending == "crash":
        await runner.send_prompt(kit.crash())
        await record.exited()
    session = runner.session_id
    await bounded(runner)
    assert session
    return session


async def goes_on(kit: Kit, later: AgentRunnerBase, session: str, ending: str) -> Record:
    """A runner that was not started takes up this session."""
    again = Record(later)
    await later.start(kit.say("back"))
    await again.said("back")
    assert later.session_id == session
    seen(later, resume="yes" if ending == "crash" else "after a stop")
    return again


def is_asked(runner: QueuedRunner) -> list[str]:
    """What it asks from now on; only what is good is allowed."""
    asked = list[str]()

    async def permit(tool: str, given: Mapping[str, object]) -> Permit:
        asked.append(f"{tool} {dict(given)}")
        return Permit("good" in str(given), "not this one")

    runner.permit = permit
    return asked


async def asks_and_obeys(kit: Kit, runner: QueuedRunner, record: Record, asked: list[str]) -> None:
    """It does what is allowed, and not what is not."""
    _, allowed = await turns(record, runner, kit.run(f"touch {kit.folder}/bad"), kit.run(f"touch {kit.folder}/good"))
    assert [f"{kit.folder}/bad" in question for question in asked] == [True, False]
    assert allowed.text == "done"
    assert [(kit.folder / name).exists() for name in ("bad", "good")] == [False, True]
    seen(runner, permission="yes")


def add_marmot(kit: Kit) -> None:
    """Have a server of one tool in the program's settings."""
    kit.add_mcp("marmot", [sys.executable, marmot.__file__, str(kit.folder / "called")])


async def uses_marmot(kit: Kit, runner: QueuedRunner, record: Record) -> None:
    """It uses the tool of that server."""
    model = kit.model
    assert model is not None
    await turns(record, runner, kit.say("hello"))
    await turns(record, runner, f"[[call {_offered(model, marmot.TOOL)} {{}}]] [[say done]]")
    assert (kit.folder / "called").exists()
    assert marmot.ANSWER in model.journal.requests[-1].everything
    seen(runner, mcp="yes")


def _offered(model: Model, tool: str) -> str:
    """The name under which the model knows a tool: every program puts something of its own before it."""
    said = " ".join(request.everything.replace("\\n", " ") for request in model.journal.requests)
    names = re.findall(rf"[\w-]*{tool}", said)
    assert names, f"the model was not told of {tool}"
    return max(names, key=len)


def _told(figure: object) -> str:
    return "yes" if figure else "no"


def queued(kit: Kit, ability: Can | None = None) -> QueuedRunner:
    """A runner that is more than the contract asks for, and can do something."""
    runner = kit.make()
    assert isinstance(runner, QueuedRunner)
    assert ability is None or ability in runner.can
    return runner
