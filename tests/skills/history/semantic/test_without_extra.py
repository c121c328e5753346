"""A server without the extra: everything else works, and the search says what is missing."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
PROGRAM = """
import importlib.abc, sys
from pathlib import Path

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
from culture.config.skills import Embeddings
from culture.skills.history import History
from culture.skills.history.semantic import Semantic
from culture.skills.history.sqlite import SQLiteStore
from culture.skills.history.store import Unavailable, View

store = SQLiteStore(Path({folder!r}) / "history.db")
store.open()
semantic = Semantic(store, Path({folder!r}), Embeddings({settings}))
semantic.start()
semantic.note()
semantic.forget(1)
try:
    semantic.search(View("#general"), "anything", 5, 1.0)
except Unavailable as error:
    print(error)
semantic.stop()
print(semantic.why_not)
print(sorted(name for name in ("numpy", "wordllama") if name in sys.modules))
"""


@pytest.mark.requirement("D10")
@pytest.mark.parametrize(
    ("blocked", "settings"),
    [({"wordllama"}, ""), ({"numpy"}, ""), ({"numpy", "wordllama"}, "url='http://127.0.0.1:1', model='m'")],
)
def test_what_to_install_is_said_and_nothing_breaks(blocked: set[str], settings: str, tmp_path: Path) -> None:
    program = PROGRAM.format(blocked=blocked, folder=str(tmp_path), settings=settings)
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=50)
    advice = "install the extra `semantic`: `culture help install` on the server's machine says how"
    assert ran.stdout.splitlines() == [advice, advice, "[]"]
    assert ran.stderr == ""


def test_nothing_of_it_is_loaded_before_the_start(tmp_path: Path) -> None:
    program = "import sys\nfrom culture.skills.history import History\nprint('numpy' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=50)
    assert ran.stdout == "False\n"
