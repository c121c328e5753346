"""The journal keeps what was written, and the state is always what the journal says."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.orchestrator.journal.journal import JournalEntry, Phase, TeamJournal
from culture.orchestrator.journal.replay import MOST, replay
from culture.orchestrator.journal.state import Act, TaskStage, TeamState
from culture.orchestrator.journal.store import TeamStore, as_data, from_data, read_state

TASK = {"id": "demo-1", "text": "do it", "by": "spark-ori", "msgid": "spark.e.1"}
TREE = {"id": "demo-1", "path": "w", "branch": "b"}
HIRE = {"name": "Ramona", "nick": "spark-Ramona", "role": "manager", "task": "demo-1", "channels": ["#work-demo-1"]}


def written(journal: TeamJournal, *lines: tuple[str, Phase, dict[str, object]]) -> TeamState:
    return replay([journal.write(1.0, what, phase, data) for what, phase, data in lines])


def test_what_was_written_is_there_again(tmp_path: Path) -> None:
    journal = TeamJournal(tmp_path / "journal.jsonl")
    state = written(journal, (Act.TASK, Phase.DONE, TASK), (Act.HIRE, Phase.INTEND, HIRE))
    journal.close()
    assert replay(TeamJournal(tmp_path / "journal.jsonl").read()) == state
    assert state.tasks["demo-1"].manager == "spark-Ramona"
    assert (tmp_path / "journal.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_line_that_was_cut_off_never_was(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    journal = TeamJournal(file)
    written(journal, (Act.TASK, Phase.DONE, TASK), (Act.HIRE, Phase.INTEND, HIRE))
    journal.close()
    whole = file.read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(first, len(whole)):
        file.write_bytes(whole[:cut])
        again = TeamJournal(file)
        assert [entry.number for entry in again.read()] == [1]
        assert again.write(2.0, Act.ANNOUNCED, Phase.DONE, {"key": "x"}).number == 2
        again.close()
        assert [entry.what for entry in TeamJournal(file).read()] == [Act.TASK, Act.ANNOUNCED]


def test_line_that_is_written_in_part_is_removed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full for a moment: the next entry follows the last whole one, and nothing is put aside."""
    file = tmp_path / "journal.jsonl"
    journal = TeamJournal(file)
    written(journal, (Act.TASK, Phase.DONE, TASK))
    whole, write = file.read_bytes(), os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda handle, line: write(handle, line[:20]))
        with pytest.raises(OSError, match="full"):
            journal.write(2.0, Act.HIRE, Phase.INTEND, HIRE)
    assert file.read_bytes() == whole
    assert journal.write(2.0, Act.ANNOUNCED, Phase.DONE, {"key": "x"}).number == 2
    journal.close()
    assert [entry.what for entry in TeamJournal(file).read()] == [Act.TASK, Act.ANNOUNCED]
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


def test_entry_counts_once_it_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each entry is synced whole, and so is each removal; one that cannot be synced was never written."""
    file, synced, fsync = tmp_path / "journal.jsonl", list[int](), os.fsync

    def note(handle: int) -> None:
        if os.path.samestat(os.fstat(handle), file.stat()):
            synced.append(os.fstat(handle).st_size)
        fsync(handle)

    def fail(handle: int) -> None:
        raise OSError(errno.EIO, "the disk is broken")

    journal = TeamJournal(file)
    journal.read()
    monkeypatch.setattr(os, "fsync", note)
    sizes = []
    for key in ("a", "b"):
        journal.write(1.0, Act.ANNOUNCED, Phase.DONE, {"key": key})
        sizes.append(file.stat().st_size)
    assert synced == sizes
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="broken"):
        journal.write(1.0, Act.ANNOUNCED, Phase.DONE, {"key": "c"})
    assert file.stat().st_size == sizes[-1]
    monkeypatch.setattr(os, "fsync", note)
    journal.restart(2)
    assert synced == [*sizes, 0]
    assert journal.write(1.0, Act.ANNOUNCED, Phase.DONE, {"key": "d"}).number == 3
    journal.close()


def test_lines_that_cannot_be_read_are_put_aside_and_those_before_them_stay(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    journal = TeamJournal(file)
    written(journal, (Act.TASK, Phase.DONE, TASK))
    journal.close()
    whole = file.read_bytes()
    rest = b"\0\0\0\n" + whole
    file.write_bytes(whole + rest)
    assert [entry.number for entry in TeamJournal(file).read()] == [1]
    assert file.read_bytes() == whole
    assert (tmp_path / "journal.cut-1").read_bytes() == rest


def test_a_number_is_given_to_one_task_also_when_it_could_not_be_taken_yet(tmp_path: Path) -> None:
    state = written(TeamJournal(tmp_path / "journal.jsonl"), (Act.TASK, Phase.INTEND, TASK))
    assert state.next_id("demo") == "demo-2"
    assert state.next_id("demo", highest=7) == "demo-8"
    assert TeamState().next_id("demo") == "demo-1"


def test_a_report_is_closed_by_its_own_end_alone(tmp_path: Path) -> None:
    report = {"key": "demo-1 m1", "id": "demo-1", "how": "done", "msgid": "m1"}
    goes_on = {"key": "demo-1 goes on", "id": "demo-1", "how": "working"}
    older = {"id": "demo-2", "how": "done", "msgid": "m0"}
    journal = TeamJournal(tmp_path / "journal.jsonl")
    begun = [(Act.REPORT, Phase.INTEND, each) for each in (older, report)]
    state = written(journal, (Act.TASK, Phase.DONE, TASK), *begun, (Act.REPORT, Phase.DONE, goes_on))
    assert [entry.data for entry in state.pending(Act.REPORT)] == [older, report]
    ends = [
        JournalEntry(9, 1.0, Act.REPORT, Phase.FAILED, older),
        JournalEntry(10, 1.0, Act.REPORT, Phase.DONE, report),
    ]
    assert replay(ends, state).pending(Act.REPORT) == []


def test_what_is_remembered_has_a_bound_but_for_what_is_asked_again() -> None:
    told = [f"overlap demo-1 demo-2 {n}" for n in range(MOST)]
    entries = [
        JournalEntry(1, 1.0, Act.TASK, Phase.DONE, TASK),
        JournalEntry(2, 1.0, Act.TASK, Phase.DONE, {**TASK, "id": "demo-2"}),
        JournalEntry(3, 1.0, Act.ANNOUNCED, Phase.DONE, {"key": "begun demo-1"}),
        JournalEntry(4, 1.0, Act.ANNOUNCED, Phase.DONE, {"key": "first"}),
        JournalEntry(5, 1.0, Act.ANNOUNCED, Phase.DONE, {"key": told[0], "also": told[1:]}),
    ]
    state = replay(entries)
    assert "begun demo-1" in state.announced and "first" not in state.announced
    # As long as both are under way nobody hears of the same file again.
    assert set(told) <= state.announced.keys()
    over = {"id": "demo-2", "how": "failed"}
    state = replay([JournalEntry(6, 1.0, Act.REPORT, Phase.DONE, over)], state)
    state = replay([JournalEntry(7, 1.0, Act.ANNOUNCED, Phase.DONE, {"key": "last"})], state)
    assert "last" in state.announced and "begun demo-1" in state.announced and len(state.announced) <= MOST // 2 + 1
    prompts = (
        JournalEntry(n, 1.0, Act.PROMPT, Phase.DONE, {"nick": "x", "key": f"k{n}"}) for n in range(8, 8 + 2 * MOST)
    )
    state = replay(prompts, state)
    assert len(state.prompts) <= MOST and f"k{7 + 2 * MOST}" in state.prompts


def test_names_rest_when_their_bearers_are_gone_and_what_they_used_counts(tmp_path: Path) -> None:
    journal = TeamJournal(tmp_path / "journal.jsonl")
    spent = {"nick": "spark-Ramona", "tokens": 700, "cost_usd": 0.5, "session": "s1", "context_pct": 40.0}
    state = written(
        journal,
        (Act.TASK, Phase.DONE, TASK),
        (Act.HIRE, Phase.INTEND, HIRE),
        (Act.HIRE, Phase.DONE, HIRE),
        (Act.SPENT, Phase.DONE, spent),
        (Act.RETIRE, Phase.INTEND, {"nick": "spark-Ramona", "why": "done"}),
        (Act.RETIRE, Phase.DONE, {"nick": "spark-Ramona"}),
    )
    assert state.names == ("Ramona",)
    assert state.members == {}
    assert (state.tokens(), state.usd(), state.task_usd("demo-1")) == (700, 0.5, 0.5)
    assert state.tasks["demo-1"].manager is None
    assert state.open == {}


def test_journal_that_is_replayed_over_its_own_snapshot_counts_nothing_twice(tmp_path: Path) -> None:
    """After a crash between the snapshot and the restart of the journal, both have the same entries."""
    store = TeamStore(tmp_path)
    store.open()
    store.done(Act.TASK, **TASK)
    store.intend(Act.HIRE, **HIRE)
    store.done(Act.HIRE, **HIRE)
    store.done(Act.SPENT, nick="spark-Ramona", tokens=700, cost_usd=0.5, session="s1", context_pct=40.0)
    store.intend(Act.RETIRE, nick="spark-Ramona", why="done")
    store.done(Act.RETIRE, nick="spark-Ramona")
    store.intend(Act.REPORT, key="demo-1 m1", id="demo-1", how="done", msgid="m1")
    before = store.state
    store.close()
    for _ in range(2):
        assert read_state(tmp_path) == before
        store = TeamStore(tmp_path)
        store.open()
        assert store.state == before
        assert (store.state.tokens(), store.state.usd(), store.state.names) == (700, 0.5, ("Ramona",))
        store.close()


_LINES = st.lists(
    st.one_of(
        st.tuples(st.just(Act.TASK), st.sampled_from(Phase), st.just(TASK)),
        st.tuples(st.just(Act.WORKTREE), st.sampled_from(Phase), st.just(TREE)),
        st.tuples(st.just(Act.HIRE), st.sampled_from(Phase), st.just(HIRE)),
        st.tuples(st.just(Act.RETIRE), st.sampled_from(Phase), st.just({"nick": "spark-Ramona"})),
        st.tuples(st.just(Act.PROMPT), st.sampled_from(Phase), st.just({"nick": "spark-Ramona", "key": "k1"})),
        st.tuples(
            st.just(Act.REPORT),
            st.sampled_from(Phase),
            st.fixed_dictionaries({"id": st.just("demo-1"), "how": st.sampled_from(["done", "failed", "waiting"])}),
        ),
        st.tuples(
            st.just(Act.SPENT),
            st.just(Phase.DONE),
            st.fixed_dictionaries(
                {"nick": st.just("spark-Ramona"), "tokens": st.integers(0, 10**6), "cost_usd": st.floats(0, 10)}
            ),
        ),
    ),
    max_size=30,
)


@given(_LINES, st.integers(0, 30))
def test_a_snapshot_and_the_rest_are_the_same_as_the_whole(
    lines: list[tuple[Act, Phase, dict[str, object]]], cut: int
) -> None:
    entries = [JournalEntry(number, 1.0, what, phase, data) for number, (what, phase, data) in enumerate(lines, 1)]
    whole = replay(entries)
    assert replay(entries, from_data(as_data(replay(entries[:cut])))) == whole
    assert replay(entries, whole) == whole
    for task in whole.tasks.values():
        assert task.stage in TaskStage
