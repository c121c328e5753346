"""Ended by kill -9 while it catches up."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from culture.skills.history.store import Store
from tests.skills.history.entries import entry
from tests.skills.history.semantic.double import Double
from tests.skills.history.semantic.searches import Start, found, positions, stored
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[4]
PROGRAM = """
import sys
from pathlib import Path
from culture.config.skills import Embeddings
from culture.skills.history.semantic import Semantic
from culture.skills.history.sqlite import SQLiteStore

folder = Path(sys.argv[1])
store = SQLiteStore(folder / "history.db")
store.open()
semantic = Semantic(store, folder, Embeddings(url=sys.argv[2], model="letters"))
semantic.start()
semantic.caught_up(1000)
"""


@pytest.mark.requirement("D10")
def test_what_was_cut_short_is_done_at_the_next_start(
    store: Store, begin: Start, double: Double, tmp_path: Path
) -> None:
    store.write([entry(seq, f"message number {seq}") for seq in range(500)])
    settings = double.settings()
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(settings.url)]
    with subprocess.Popen(command, cwd=ROOT) as process:

        def deadly(texts: list[str]) -> tuple[int, bytes]:
            if len(double.asked) == 8:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
            return answer(texts)

        answer, double.answer = double.answer, deadly
        assert process.wait(PATIENCE) == -signal.SIGKILL
    half = stored(tmp_path)
    assert 0 < len(half) < 500
    semantic = begin(settings)
    assert found(semantic, "message number 499", limit=500)
    assert sorted(stored(tmp_path)) == positions(store)
    assert len(positions(store)) == 500
    assert len(double.texts) <= 500 + 32 + 4, "what was done before is not done again"
