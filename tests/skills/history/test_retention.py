"""What is older or more than is to be kept goes, and nothing else."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.config.skills import HistoryConfig, Retention
from culture.skills.history import retention
from culture.skills.history.retention import Excess, Keeper, Pieces
from culture.skills.history.sqlite import SQLiteStore
from culture.skills.history.store import Store, Unavailable
from tests.skills.history.entries import SECOND, START, entry, numbers, private
from tests.support.client import registered
from tests.support.servers import serving
from tests.support.waiting import PATIENCE

HOUR = 3600
ADA, BOB = ("ada", "ada"), (None, "bob")
Result = TypeVar("Result")


class Direct:
    """Asks the store without waiting for what was just said."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.asked = 0
        self.noted: list[tuple[str, int]] = []

    def note(self, place: str, before: int) -> None:
        self.noted.append((place, before))

    async def tend(self, act: Callable[[Store], Result]) -> Result:
        self.asked += 1
        return act(self.store)


def keeper(store: Store, now: int, **settings: Any) -> tuple[Keeper, Direct]:
    """One that reckons with this second after the start."""
    archive = Direct(store)
    made = Keeper(archive, HistoryConfig(**settings), lambda: START / SECOND + now, archive.note)  # type: ignore[arg-type]
    return made, archive


def left(store: Store, place: str | None = None) -> list[int]:
    return numbers(list(store.everything(place)))


async def test_what_is_too_old_goes(store: Store) -> None:
    store.write([entry(seq) for seq in range(10)])
    sweeper, _ = keeper(store, 10, keep=Retention(age=4.0))
    await sweeper.sweep()
    assert left(store) == [6, 7, 8, 9]
    await sweeper.sweep()
    assert left(store) == [6, 7, 8, 9]


async def test_whoever_knows_of_a_channel_is_told_what_went(store: Store) -> None:
    """The search by meaning follows; of private conversations it knows nothing."""
    store.write([entry(1), private(2, "hello", ADA, BOB), entry(9)])
    sweeper, archive = keeper(store, 10, keep=Retention(age=4.0), private=Retention(age=4.0))
    await sweeper.sweep()
    assert left(store) == [9]
    assert archive.noted == [("#general", START + 6 * SECOND)]


async def test_what_was_set_aside_from_a_name_goes_with_the_channel_of_that_name(store: Store) -> None:
    """It has no name of its own that a rule could say."""
    store.write([entry(1, "x" * 100, closed=True), entry(2, "x" * 100, place="#mine", target="#mine")])
    store.move("#mine", "#general", "#general")
    store.write([entry(3, "x" * 100), entry(4, "another", place="#general2")])
    assert left(store) == [1, 2, 3, 4]
    sweeper, _ = keeper(store, 4, channels={"#general": Retention(size=250)})
    await sweeper.sweep()
    assert left(store) == [2, 3, 4]
    sweeper, _ = keeper(store, 10, channels={"#general": Retention(age=1.0)})
    await sweeper.sweep()
    assert left(store) == [4]


async def test_what_is_too_much_goes_the_oldest_first(store: Store) -> None:
    store.write([entry(seq, "x" * 100) for seq in range(10)])
    sweeper, _ = keeper(store, 10, keep=Retention(size=350))
    await sweeper.sweep()
    assert left(store) == [7, 8, 9]


async def test_the_stricter_of_age_and_size_holds(store: Store) -> None:
    store.write([entry(seq, "x" * 100) for seq in range(10)])
    sweeper, _ = keeper(store, 10, keep=Retention(age=2.0, size=350))
    await sweeper.sweep()
    assert left(store) == [8, 9]


async def test_a_channel_may_have_a_rule_of_its_own_however_it_is_written(store: Store) -> None:
    store.write([each for seq in range(5) for each in (entry(seq), entry(seq, place="#logs", target="#Logs"))])
    sweeper, _ = keeper(store, 5, keep=Retention(age=3.0), channels={"#LOGS": Retention(age=1.0)})
    await sweeper.sweep()
    assert left(store, "#general") == [2, 3, 4]
    assert left(store, "#logs") == [4]


async def test_a_channel_may_be_kept_for_ever(store: Store) -> None:
    store.write([entry(seq) for seq in range(5)])
    sweeper, _ = keeper(store, 5, keep=Retention(age=3.0), channels={"#general": Retention()})
    await sweeper.sweep()
    assert left(store) == [0, 1, 2, 3, 4]


async def test_private_conversations_have_their_own_rule(store: Store) -> None:
    store.write([each for seq in range(5) for each in (entry(seq), private(seq + 100, "psst", ADA, BOB))])
    sweeper, _ = keeper(store, 105, private=Retention(age=2.0))
    await sweeper.sweep()
    assert left(store) == [0, 1, 2, 3, 4, 103, 104]
    unruled, _ = keeper(store, 10_000, keep=Retention(age=1.0))
    await unruled.sweep()
    assert left(store) == [103, 104]


async def test_much_is_removed_in_steps(store: Store) -> None:
    store.write([entry(seq, at=START + seq * 60 * SECOND) for seq in range(5_000)])
    sweeper, archive = keeper(store, 5_000 * 60, keep=Retention(age=60.0))
    await sweeper.sweep()
    assert left(store) == [4_999]
    assert archive.asked > 5


async def test_without_a_rule_there_is_nothing_to_run(store: Store) -> None:
    store.write([entry(1)])
    sweeper, archive = keeper(store, 10**9)
    await asyncio.wait_for(sweeper.run(), PATIENCE)
    assert (archive.asked, left(store)) == (0, [1])


async def test_a_store_that_is_not_to_be_had_is_asked_again_later(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "PERIOD", 0.001)
    store.write([entry(seq) for seq in range(10)])
    sweeper, archive = keeper(store, 10, keep=Retention(age=4.0))
    answer, tries, done = archive.tend, 0, asyncio.Event()

    async def tend(ask: Callable[[Store], Result]) -> Result:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise Unavailable("locked")
        result = await answer(ask)
        if not [seq for seq in left(store) if seq < 6]:
            done.set()
        return result

    archive.tend = tend  # type: ignore[method-assign]
    running = asyncio.create_task(sweeper.run())
    await asyncio.wait_for(done.wait(), PATIENCE)
    running.cancel()
    assert left(store) == [6, 7, 8, 9]


@given(st.integers(0, 10**15), st.integers(0, 10**12), st.data())
def test_the_steps_lead_to_the_end(first: int, length: int, data: st.DataObject) -> None:
    before, last = first + length, first
    pieces = Pieces(Excess("#c", first, before))
    for steps, at in enumerate(pieces):
        assert last < at <= before
        last = at
        pieces.removed(data.draw(st.sampled_from([0, 1_000, 10_000])) if steps < 50 else 0)
    assert last == before


async def test_a_server_removes_what_is_old_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "PERIOD", 0.01)
    path = tmp_path / "data" / "history" / "history.db"
    old = SQLiteStore(path)
    old.open()
    old.write([entry(seq) for seq in range(100)])
    old.close()
    async with (
        serving(tmp_path, history=HistoryConfig(keep=Retention(age=float(HOUR)))) as ircd,
        registered(ircd.port, "spark-ori", "agentirc.dev/receipts message-tags") as ori,
    ):
        await ori.join("#general")
        ori.send("PRIVMSG #general :still here")
        await ori.expect("TAGMSG")
        async with asyncio.timeout(PATIENCE):
            while await _said(ori) != ["still here"]:
                pass


async def _said(client: Any) -> list[str]:
    client.send("HISTORY RECENT #general 200")
    found = []
    while (message := await client.receive()).verb != "HISTORYEND":
        if message.verb == "HISTORY":
            found.append(message.params[-1])
    return found
