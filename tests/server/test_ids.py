"""Ids that are never used twice (decision 4)."""

import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from culture.server.core.ids import BLOCK, Ids


def test_ids_of_a_later_start_are_all_higher(tmp_path: Path) -> None:
    first = Ids(tmp_path / "ids.json", "spark")
    used = [first.stamp() for _ in range(5)]
    second = Ids(tmp_path / "ids.json", "spark")
    fresh = second.stamp()
    assert fresh.epoch == used[0].epoch
    assert fresh.seq > max(stamp.seq for stamp in used)
    assert fresh.msgid == f"spark.{fresh.epoch}.{fresh.seq}"


def test_a_block_is_on_disk_before_it_is_used(tmp_path: Path) -> None:
    path = tmp_path / "ids.json"
    ids = Ids(path, "spark")
    for _ in range(BLOCK + 1):
        stamp = ids.stamp()
        assert stamp.seq % BLOCK or json.loads(path.read_text())["reserved"] > stamp.seq
    assert json.loads(path.read_text())["reserved"] > stamp.seq


@given(st.binary(max_size=80))
def test_a_broken_file_gives_a_new_epoch(kept: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ids.json"
        path.write_bytes(kept)
        assert Ids(path, "spark").stamp().seq >= 1
        assert Ids(path, "spark").stamp().seq > BLOCK


def test_a_restored_folder_without_the_file_has_another_epoch(tmp_path: Path) -> None:
    one = Ids(tmp_path / "ids.json", "spark")
    one.stamp()
    (tmp_path / "ids.json").unlink()
    assert Ids(tmp_path / "ids.json", "spark").epoch != one.epoch


def test_kill_9_between_ids_repeats_none(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from culture.server.core.ids import Ids\n"
        "ids = Ids(Path(sys.argv[1]), 'spark')\n"
        "while True: print(ids.stamp().msgid, flush=True)"
    )
    seen: list[str] = []
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "ids.json")], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            seen += [process.stdout.readline() for _ in range(50)]
            process.send_signal(signal.SIGKILL)
    assert len(set(seen)) == len(seen) == 150


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    Ids(tmp_path / "ids.json", "spark").stamp()
    assert (tmp_path / "ids.json").stat().st_mode & 0o777 == 0o600


def test_a_disk_that_takes_nothing_ends_the_epoch_and_nothing_else(tmp_path: Path) -> None:
    """B10: a full disk, or no descriptor left: ids go on, none comes twice, also after the next start."""
    path = tmp_path / "data" / "ids.json"
    path.parent.mkdir()
    ids = Ids(path, "spark")
    used = {ids.stamp().msgid for _ in range(BLOCK)}
    path.parent.rename(tmp_path / "away")
    path.parent.write_text("in the way")
    used |= {ids.stamp().msgid for _ in range(BLOCK)}
    path.parent.unlink()
    (tmp_path / "away").rename(path.parent)
    assert Ids(path, "spark").stamp().msgid not in used
    used |= {ids.stamp().msgid for _ in range(BLOCK)}
    assert len(used) == 3 * BLOCK
    assert Ids(path, "spark").stamp().msgid not in used
