"""A full disk, no more files, a person who is quicker than a restart: nothing is lost, and nobody is left for dead."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from culture.clients.shared import reporting
from culture.clients.shared.budget import Quota
from culture.clients.shared.completion import Completion
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.inbox import Inbox
from culture.clients.shared.keeper import Keeper
from culture.clients.shared.notes import Notes
from culture.clients.shared.once import Once
from culture.clients.shared.outbox import Outbox
from culture.clients.shared.questions import board
from culture.clients.shared.queued import QueuedRunner
from culture.clients.shared.records import Records
from culture.clients.shared.recovery import Recovery
from culture.clients.shared.turn import COMPACT, AgentDied, News, RunnerSetup, Turn
from culture.clients.shared.unfinished_work import UnfinishedWork
from culture.clients.shared.work import Work
from culture.config.agents import RecoveryConfig, TrustConfig
from culture.protocol.vocabulary import UserClass
from culture.runtime import REAL, Runtime
from culture.server.ircd import IRCd
from culture.transport import Message
from tests.clients.shared.test_daemon import NICK
from tests.support.agents import agents_yaml, playbook, running
from tests.support.asking import Scene
from tests.support.client import registered
from tests.support.clock import ClockedRuntime
from tests.support.waiting import until

FULL = sqlite3.OperationalError("database or disk is full")


@pytest.fixture
def records(home: Path) -> Iterator[Records]:
    made = Records(home / "inbox" / "spark-bot.db")
    yield made
    made.close()


class Fake(QueuedRunner):
    """An agent without a process: echoes, and dies on ``die``."""

    opened: asyncio.Event | None = None
    closing: asyncio.Event | None = None
    closed = False

    async def open(self) -> None:
        if self.opened is not None:
            await self.opened.wait()

    async def take_turn(self, prompt: str) -> Turn:
        if prompt == "die":
            raise AgentDied(3)
        return Turn(text=prompt)

    async def close(self) -> None:
        if self.closing is not None:
            await self.closing.wait()
        self.closed = True

    @property
    def session_id(self) -> str | None:
        return None


class Told:
    """Listens, and fails when it is to."""

    def __init__(self) -> None:
        self.fails = 0
        self.turns: list[Turn] = []
        self.crashes: list[float | None] = []
        self.unable: list[str] = []
        self.ready = 0
        self.silences: list[float] = []

    def _may_fail(self) -> None:
        if self.fails:
            self.fails -= 1
            raise FULL

    async def on_message(self, message: dict[str, Any]) -> None: ...

    async def on_turn(self, turn: Turn) -> None:
        self._may_fail()
        self.turns.append(turn)

    def on_usage(self, tokens: int, cost_usd: float) -> None: ...

    def on_quotas(self, quotas: Sequence[Quota]) -> None: ...

    def on_news(self, news: News) -> None: ...

    def on_own_turn(self) -> bool:
        return True

    def on_own_end(self, turn: Turn) -> None: ...

    def on_beside(self, tokens: int) -> bool:
        return False

    def on_crash(self, code: int, restart_in: float | None) -> None:
        self.crashes.append(restart_in)
        self._may_fail()

    def on_unable(self, why: str) -> None:
        self.unable.append(why)

    def on_ready(self, resumed: bool) -> None:
        self.ready += 1

    def on_silence(self, seconds: float) -> None:
        self.silences.append(seconds)
        self._may_fail()


class Kept:
    """A keeper of fakes."""

    def __init__(self, records: Records, crashes: int = 3, silence: float = 60.0, runtime: Runtime = REAL) -> None:
        self.told, self.made = Told(), list[Fake]()
        self.make: Callable[[], Fake] = lambda: Fake(RunnerSetup("spark-bot", Path("/")))
        config = RecoveryConfig(restart_delay=0.01, crashes=crashes, window=300, silence=silence, interrupt_grace=0.05)
        recovery = Recovery(config.restart_delay, config.crashes, config.window)
        self.keeper = Keeper("spark-bot", self._made, Notes(records), recovery, config, runtime=runtime)
        self.keeper.watch(self.told, lambda: False)

    def _made(self, session: str | None, token: str) -> Fake:
        self.made.append(self.make())
        return self.made[-1]


@asynccontextmanager
async def kept(records: Records, crashes: int = 3) -> AsyncIterator[Kept]:
    there = Kept(records, crashes)
    await there.keeper.start()
    try:
        yield there
    finally:
        await there.keeper.stop()


async def test_a_turn_that_cannot_be_noted_does_not_end_the_work(records: Records) -> None:
    async with kept(records) as there:
        there.told.fails = 1
        await there.keeper.feed("one")
        await there.keeper.feed("two")
        await until(lambda: [turn.text for turn in there.told.turns] == ["two"])


async def test_a_turn_is_over_though_its_session_could_not_be_noted(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Remembers(Fake):
        @property
        def session_id(self) -> str | None:
            return "s1"

    there = Kept(records)
    there.make = lambda: Remembers(RunnerSetup("spark-bot", Path("/")))
    await there.keeper.start()
    fail_once(monkeypatch, there.keeper._notes, "_set")
    await there.keeper.feed("one")
    await until(lambda: [turn.text for turn in there.told.turns] == ["one"])
    await there.keeper.stop()


async def test_an_agent_is_looked_after_though_its_start_could_not_be_told(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with kept(records) as there:
        fail_once(monkeypatch, there.told, "on_ready")
        await there.keeper.feed("die")
        await until(lambda: len(there.made) == 2 and there.keeper.ready)
        await there.keeper.feed("die")
        await until(lambda: there.told.ready == 2)


async def test_a_crash_that_cannot_be_told_is_seen_to_all_the_same(records: Records) -> None:
    async with kept(records) as there:
        there.told.fails = 1
        await there.keeper.feed("die")
        await until(lambda: there.told.ready == 2)
        await there.keeper.feed("two")
        await until(lambda: bool(there.told.turns))


async def test_an_agent_that_cannot_even_be_made_is_parked_and_can_be_resumed(records: Records) -> None:
    async with kept(records) as there:
        make = there.make

        def fails() -> Fake:
            raise FULL

        there.make = fails
        await there.keeper.feed("die")
        await until(lambda: there.keeper.parked)
        there.make = make
        await there.keeper.revive()
        assert there.keeper.ready


async def test_resumed_with_a_configuration_that_is_still_wrong_it_stays_parked(records: Records) -> None:
    async with kept(records, crashes=1) as there:
        make = there.make

        def wrong() -> Fake:
            raise WrongConfiguration("no such playbook")

        await there.keeper.feed("die")
        await until(lambda: there.keeper.parked)
        there.make = wrong
        await there.keeper.revive()
        assert there.keeper.parked
        assert there.told.unable == ["no such playbook"]
        there.make = make
        await there.keeper.revive()
        assert there.keeper.ready


async def test_resumed_while_the_old_one_is_still_ending_the_new_one_is_left_alone(records: Records) -> None:
    async with kept(records, crashes=1) as there:
        there.made[0].closing = asyncio.Event()
        await there.keeper.feed("die")
        await until(lambda: there.keeper.parked)
        reviving = asyncio.create_task(there.keeper.revive())
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(there.made) == 1
        there.made[0].closing.set()
        await reviving
        assert there.keeper.ready
        assert Notes(records).token is not None


async def test_the_death_of_one_that_is_being_replaced_is_not_that_of_its_successor(records: Records) -> None:
    async with kept(records) as there:
        old = there.made[0]
        assert old.on_exit is not None
        # Its session is full, and its program ends of it before anybody could.
        there.keeper.renew()
        await old.on_exit(1)
        await until(lambda: there.told.ready == 2)
        await there.keeper.feed("one")
        await until(lambda: [turn.text for turn in there.told.turns] == ["one"])
        assert there.told.crashes == []


async def test_resumed_after_the_end_nothing_is_started(records: Records) -> None:
    async with kept(records, crashes=1) as there:
        await there.keeper.feed("die")
        await until(lambda: there.keeper.parked)
        await there.keeper.stop()
        await there.keeper.revive()
        assert len(there.made) == 1


async def test_stopped_while_it_is_being_resumed_nothing_is_left(records: Records) -> None:
    async with kept(records, crashes=1) as there:
        await there.keeper.feed("die")
        await until(lambda: there.keeper.parked)
        Fake.opened = asyncio.Event()
        try:
            reviving = asyncio.create_task(there.keeper.revive())
            await until(lambda: len(there.made) == 2)
            async with asyncio.timeout(30):
                await there.keeper.stop()
                await reviving
        finally:
            Fake.opened = None
        assert there.made[1].closed
        assert not there.keeper.ready


@pytest.mark.parametrize("streams", [True, False])
async def test_whatever_the_program_streams_is_a_sign_of_life(records: Records, streams: bool) -> None:
    """A long answer that comes piece by piece is no silence, though no message is complete for a long time."""
    now, looks = 1000.0, 0

    def look() -> float:
        nonlocal looks
        looks += 1
        return now

    there = Kept(records, silence=0.08, runtime=ClockedRuntime(look, steady=True))

    def looked(often: int) -> bool:
        return looks >= often or bool(there.told.silences)

    class Streams(Fake):
        async def take_turn(self, prompt: str) -> Turn:
            nonlocal now
            for _ in range(3):
                now += 0.07
                if streams:
                    self.touch()
                await until(partial(looked, looks + 2))
            return Turn(text=prompt)

    there.make = lambda: Streams(RunnerSetup("spark-bot", Path("/")))
    await there.keeper.start()
    try:
        await there.keeper.feed("a long answer")
        await until(lambda: there.told.turns or there.told.silences)
    finally:
        await there.keeper.stop()
    assert bool(there.told.silences) is not streams


async def test_silence_is_looked_for_also_after_it_could_not_be_told(records: Records) -> None:
    there = Kept(records, silence=0.1)
    there.told.fails = 1
    hanging = asyncio.Event()

    class Hangs(Fake):
        async def take_turn(self, prompt: str) -> Turn:
            await hanging.wait()
            return Turn()

    there.make = lambda: Hangs(RunnerSetup("spark-bot", Path("/")))
    await there.keeper.start()
    try:
        await there.keeper.feed("hang")
        await until(lambda: there.told.ready == 2)
    finally:
        await there.keeper.stop()


def test_after_a_full_disk_changes_work_again(records: Records) -> None:
    (pages,) = records.execute("PRAGMA page_count").fetchone()
    records.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(sqlite3.OperationalError, match="full"), records.change() as changing:
        changing.execute("INSERT INTO notes VALUES ('a', 'b')")
        changing.execute("INSERT INTO notes VALUES ('big', ?)", ("x" * 1_000_000,))
    assert records.execute("SELECT count(*) FROM notes").fetchone() == (0,)
    records.execute("PRAGMA max_page_count = 1000000")
    with records.change() as changing, changing.change() as inner:
        inner.execute("INSERT INTO notes VALUES ('a', 'b')")
    assert records.execute("SELECT value FROM notes").fetchall() == [("b",)]


class Line:
    """A transport that is connected and remembers."""

    settled = True
    is_behind = False

    def __init__(self) -> None:
        self.said: list[str] = []
        self.fails: list[Exception] = []

    async def send_privmsg(self, place: str, text: str, tags: object, *, skip: int = 0) -> list[str]:
        if self.fails:
            raise self.fails.pop()
        self.said.append(text)
        return []

    send_notice = send_privmsg

    async def request(self, verb: str, *params: str) -> list[object]:
        return []


def outbox_on(records: Records, line: Line, again: float = 0.01) -> Outbox:
    """What is said goes to the line."""
    return Outbox(records, line, Once("spark-bot", records, line), again)  # type: ignore[arg-type]


async def test_an_outbox_goes_on_after_an_error_of_any_kind(records: Records) -> None:
    line = Line()
    outbox = outbox_on(records, line)
    outbox.start()
    line.fails = [FULL]
    outbox.say("#general", "one")
    await until(lambda: line.said == ["one"])
    line.fails = [ValueError("poison")]
    outbox.say("#general", "two")
    outbox.say("#general", "three")
    await until(lambda: "three" in line.said)
    await outbox.stop()


async def test_half_a_character_is_said_as_a_question_mark(records: Records) -> None:
    line = Line()
    outbox = outbox_on(records, line)
    outbox.start()
    outbox.say("#general", "a\ud83db")
    await until(lambda: line.said == ["a?b"])
    await outbox.stop()


def message(number: int) -> Message:
    return Message(
        "#general", "spark-ori", f"@spark-bot {number}", datetime.now(UTC), f"m{number}", kind=UserClass.HUMAN
    )


COOL_DOWN = 0.02


class Hand:
    """Takes prompts."""

    ready = True

    def __init__(self) -> None:
        self.fed: list[str] = []

    async def feed(self, text: str) -> None:
        self.fed.append(text)


def completion(inbox: Inbox) -> Completion:
    return Completion(
        UnfinishedWork(inbox._notes, time.time),
        lambda prompt: None,
        open_questions=tuple,
        question=lambda number: None,
        unread_in=inbox.unread_in,
        in_background=lambda place: 0,
        is_held=lambda: False,
        note=str,
    )


@asynccontextmanager
async def working(
    records: Records, inbox: Inbox, outbox: Outbox, cool_down: float = 0.0
) -> AsyncIterator[tuple[Work, Hand]]:
    hand = Hand()
    work = Work(
        "spark-bot",
        inbox,
        hand,
        outbox.say,
        post_output="auto",
        quiet_hours=None,
        retry_after=0.01,
        cool_down=cool_down,
        may_begin=lambda: True,
        changed=lambda: None,
        renew=lambda: None,
        completion=completion(inbox),
    )
    work.start()
    try:
        yield work, hand
    finally:
        await work.stop()


def fail_once(monkeypatch: pytest.MonkeyPatch, target: object, name: str) -> None:
    works, failed = getattr(target, name), list[bool]()

    def fails(*given: Any, **named: Any) -> Any:
        if not failed:
            failed.append(True)
            raise FULL
        return works(*given, **named)

    monkeypatch.setattr(target, name, fails)


async def test_an_answer_and_its_note_are_one(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox, outbox = Inbox(records, Notes(records)), outbox_on(records, Line())
    async with working(records, inbox, outbox) as (work, hand):
        inbox.receive(message(1))
        work.wake()
        await until(lambda: len(hand.fed) == 1)
        fail_once(monkeypatch, inbox, "end")
        with pytest.raises(sqlite3.OperationalError):
            await work.ended(Turn(text="the answer"))
        # Neither said nor noted, so it is given again, and answered once.
        assert records.execute("SELECT count(*) FROM outbox").fetchone() == (0,)
        await until(lambda: len(hand.fed) == 2)
        await work.ended(Turn(text="the answer"))
        assert records.execute("SELECT text FROM outbox").fetchall() == [("the answer",)]
        assert records.execute("SELECT state FROM messages").fetchall() == [("answered",)]


async def test_what_is_given_up_and_that_its_sender_is_told_are_one(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in between, the daemon would know it as done with, and nobody would ever hear of it."""
    inbox, outbox = Inbox(records, Notes(records)), outbox_on(records, Line())
    async with working(records, inbox, outbox) as (work, hand):
        inbox.receive(message(1))
        work.wake()
        await until(lambda: len(hand.fed) == 1)
        work.broken("crashed with code 3")
        work.wake()
        await until(lambda: len(hand.fed) == 2)
        fail_once(monkeypatch, work, "_say")
        with pytest.raises(sqlite3.OperationalError):
            work.broken("crashed with code 3")
        assert records.execute("SELECT state FROM messages").fetchall() == [("given",)]


async def test_what_is_given_up_at_a_start_that_fails_is_told_at_the_next(
    ircd: IRCd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = agents_yaml(home, ircd.port, {"nick": NICK})
    async with running(config, NICK) as daemon:
        await daemon.service.pause()
        daemon.inbox.receive(message(1))
        daemon.records.execute("UPDATE messages SET state = 'given', given = 5")
    fail_once(monkeypatch, Outbox, "say")
    with pytest.raises(sqlite3.OperationalError):
        async with running(config, NICK):
            pass
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        async with running(config, NICK):
            assert "I gave up on spark-ori's message m1" in str(await ori.expect("NOTICE"))


class Slow(Inbox):
    """Looking at it takes a while, on a machine with much to do."""

    @property
    def is_called_by_people(self) -> bool:
        loop = asyncio.get_running_loop()
        over = loop.time() + 2 * COOL_DOWN
        while loop.time() < over:
            pass
        return super().is_called_by_people


async def test_what_comes_as_the_pause_after_a_turn_ends_is_not_forgotten(records: Records) -> None:
    """Whether to wait and how long were two looks at the clock: what came between them waited for ever."""
    inbox, outbox = Slow(records, Notes(records)), outbox_on(records, Line())
    async with working(records, inbox, outbox, COOL_DOWN) as (work, hand):
        inbox.receive(replace(message(1), kind=UserClass.AGENT))
        work.wake()
        await until(lambda: len(hand.fed) == 1)
        inbox.receive(replace(message(2), kind=UserClass.AGENT))
        await work.ended(Turn(text="the answer"))
        await until(lambda: len(hand.fed) == 2)


async def test_a_question_ends_though_that_could_not_be_noted_at_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "LOOK_AFTER_TROUBLE", 0.01)
    stage = Scene(tmp_path, TrustConfig())
    fail_once(monkeypatch, stage.questions._store, "close")
    await stage.ask(timeout=0.01)
    stage.now += 1
    await until(lambda: stage.acts == ["pause"])
    assert stage.questions.open == []
    stage.kill()


async def test_reporting_goes_on_after_an_error_of_its_own(
    ircd: IRCd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "_AGAIN", 0.01)
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, [])})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        fail_once(monkeypatch, daemon.reporting._reports, "first")
        daemon.reporting.wake()
        ori.send(f"PRIVMSG #general :@{NICK} hello")
        await ori.expect("PRIVMSG", "#general")
        await until(lambda: daemon.reporting._reports.first() is None)


@pytest.mark.parametrize(
    "turn", [{"error": "529"}, {"full": True}, {"limited_until": 1.0}, {"interrupted": True}, {"text": "done"}]
)
async def test_a_turn_is_paid_for_however_it_ends(records: Records, turn: dict[str, Any]) -> None:
    inbox, outbox = Inbox(records, Notes(records)), outbox_on(records, Line())
    async with working(records, inbox, outbox) as (work, hand):
        inbox.receive(message(1))
        work.wake()
        await until(lambda: len(hand.fed) == 1)
        await work.ended(Turn(tokens=100, cost_usd=0.5, **turn))
        assert (inbox.spent(0).tokens, inbox.spent(0).cost_usd) == (100, 0.5)
        work.command(COMPACT)
        await until(lambda: COMPACT in hand.fed)
        await work.ended(Turn(tokens=11))
        assert inbox.spent(0).tokens == 111


async def test_a_crash_does_not_make_a_turn_free(ircd: IRCd, home: Path) -> None:
    rules = [{"when": "die", "steps": [{"wait": {"until": str(home / "go"), "timeout": "30s"}}, {"crash": 3}]}]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} die")
        await until(lambda: daemon.work.busy)
        daemon.minding.on_usage(5000, 0.0)
        (home / "go").touch()
        await until(lambda: daemon.inbox.spent(0).tokens == 5000)


async def test_work_goes_on_after_a_crash_whose_cost_could_not_be_noted(
    ircd: IRCd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = [{"when": "die", "steps": [{"crash": 3}]}]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        fail_once(monkeypatch, daemon.purse, "cut_off")
        ori.send(f"PRIVMSG #general :@{NICK} die")
        await until(lambda: daemon.records.execute("SELECT state FROM messages").fetchall() == [("failed",)])


async def test_work_goes_on_after_a_limit_that_could_not_be_noted(
    ircd: IRCd, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = [{"when": "tea", "steps": [{"wait": {"until": str(home / "go"), "timeout": "30s"}}]}]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori, running(config, NICK) as daemon:
        await ori.join("#general")
        ori.send(f"PRIVMSG #general :@{NICK} tea")
        await until(lambda: daemon.work.busy)
        fail_once(monkeypatch, daemon.purse, "limited")
        with pytest.raises(sqlite3.OperationalError):
            await daemon.minding.on_turn(Turn(error="limited", limited_until=daemon.inbox._clock() + 60))
        assert not daemon.work.busy


async def test_what_an_agent_worked_on_comes_again_though_its_death_could_not_be_noted(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox, outbox = Inbox(records, Notes(records)), outbox_on(records, Line())
    async with working(records, inbox, outbox) as (work, hand):
        inbox.receive(message(1))
        work.wake()
        await until(lambda: len(hand.fed) == 1)
        fail_once(monkeypatch, inbox, "broken")
        with pytest.raises(sqlite3.OperationalError):
            work.broken("crashed")
        work.wake()
        await until(lambda: len(hand.fed) == 2)
