"""``make proof NAME=fuzz``: a thousand seeds of each kind of garbage."""

import json
import logging
import os
from collections import Counter
from pathlib import Path

import pytest

from culture.config.model import Operator
from tests.support.client import registered
from tests.support.fuzz import garbage, login, noise, resident_kib, throw
from tests.support.servers import serving
from tests.support.verbs import every_verb

VERBS = list(every_verb())
SEEDS = int(os.environ.get("FUZZ_SEEDS", "1000"))
FIRST = int(os.environ.get("PROOF_SEED", "0"))
KIB_OF_GROWTH = 16 * 1024


def leave(figures: dict[str, int]) -> None:
    """Hand the figures to the record of the proof."""
    if path := os.environ.get("PROOF_FIGURES"):
        Path(path).write_text(json.dumps(figures), encoding="utf-8")


async def test_a_thousand_seeds(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A13, A14: before registration, as a user and as an operator; nobody else notices."""
    count: Counter[str] = Counter()
    before = 0
    async with (
        serving(tmp_path, operators=(Operator(name="root", password="very secret"),)) as ircd,
        registered(ircd.port, "spark-witness") as witness,
    ):
        for seed in range(FIRST, FIRST + SEEDS):
            user = login(f"spark-fuzz{seed}", "JOIN #fuzz")
            for greeting in (b"", user, user + b"OPER root :very secret\r\n"):
                for data in (noise(seed, 50_000), garbage(seed, VERBS, 200)):
                    said = await throw(ircd.port, greeting + data)
                    count.update(connections=1, bytes_sent=len(data), lines_answered=said.count(b"\r\n"))
                    await witness.sync()
            if seed == FIRST + SEEDS // 5:
                before = resident_kib()
        growth = resident_kib() - before
        assert len(ircd.parts.sessions) == 1
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    leave({"seeds": SEEDS, **count, "memory_growth_kib": growth, "errors_logged": len(errors)})
    assert errors == []
    assert growth < KIB_OF_GROWTH
