"""Whatever lies where our files should be, every check says something sensible."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from culture.cli.doctor.command import CHECKS
from culture.cli.doctor.inventory import Inventory
from culture.cli.doctor.runner import run_checks
from tests.cli.doctor.conftest import NICK, Patient

OURS = (
    "culture.yaml",
    "agents.yaml",
    "accounts.json",
    "data/spark/lock",
    "data/spark/history/history.db",
    "data/spark/federation/links.json",
    "data/spark/federation/status.json",
    "run/spark.pid",
    f"run/{NICK}.pid",
    f"secrets/{NICK}",
    "tls/spark.key",
    f"inbox/{NICK}.db",
    "team/shop/team.yaml",
    "team/shop/state.json",
    "team/shop/journal.jsonl",
    "wiki/shop",
)
GARBAGE: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: path.write_bytes(b""),
    "bytes": lambda path: path.write_bytes(bytes(range(256))),
    "a number": lambda path: path.write_text("42\n"),
    "null": lambda path: path.write_text("null\n"),
    "a list": lambda path: path.write_text("[1, [2], {}]\n"),
    "a block": lambda path: path.write_text('{"links": 1, "pid": "x", "accounts": [], "name": []}\n'),
    "a folder": lambda path: path.mkdir(),
    "a symlink to nowhere": lambda path: path.symlink_to("nowhere"),
    "a symlink to itself": lambda path: path.symlink_to(path.name),
}


@pytest.mark.parametrize("kind", GARBAGE)
@pytest.mark.parametrize("configured", [True, False], ids=["with a configuration", "everywhere"])
def test_garbage_in_the_place_of_our_files(patient: Patient, kind: str, configured: bool) -> None:
    for name in OURS:
        path = patient.file(name)
        path.unlink()
        GARBAGE[kind](path)
    if configured:
        for name in ("culture.yaml", "agents.yaml"):
            path = patient.home / name
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        patient.server()
        patient.agents()
        patient.home.joinpath("culture.yaml").chmod(0o600)
    outcomes = run_checks(CHECKS, Inventory())
    surprised = [each.what for outcome in outcomes for each in outcome.findings if "doctor` itself" in each.why]
    for path in (patient.home / "run").iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    assert surprised == []
    assert all(each.what and each.next for outcome in outcomes for each in outcome.findings if each.severity != "ok")
