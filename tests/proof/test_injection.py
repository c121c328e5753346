"""``make proof NAME=injection DATA=folder``: 250 strings that others collected attack an agent every way there is."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from tests.support.attacked import attacked
from tests.support.injection import read_data
from tests.support.servers import serving

DATA = os.environ.get("DATA", "")


@pytest.mark.skipif(not DATA, reason="not run: it needs DATA=<folder with BIPIA and AgentDojo>")
async def test_no_string_gets_past_the_frame_by_any_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collections = read_data(Path(DATA))
    strings = [text for texts in collections.values() for text in texts]
    home, runtime = tmp_path / "home", tmp_path / "run"
    for folder in (home, runtime):
        folder.mkdir(mode=0o700)
    monkeypatch.setenv("CULTURE_HOME", str(home))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    async with serving(tmp_path / "server") as ircd, attacked(home, ircd.port) as attack:
        for way in (attack.topics, attack.rooms, attack.answers, attack.nicks, attack.channels, attack.hooks):
            await way(strings)
            print(way.__name__, attack.figures, flush=True)
        await attack.pages(strings, "culture")
        attack.prompts_are_clean()
        attack.nothing_was_obeyed()
    kinds = ("imitation", "invisible", "a control word", "an answer", "a task")
    figures = {
        **{name: len(texts) for name, texts in collections.items()},
        **attack.figures,
        "offences": len(attack.found),
        "offences by kind": {kind: sum(kind in each for each in attack.found) for kind in kinds},
    }
    if path := os.environ.get("PROOF_FIGURES"):
        await asyncio.to_thread(Path(path).write_text, json.dumps(figures))
    assert attack.found == []
