"""``culture doctor`` as it is typed: what it prints, how it ends, and that it keeps secrets."""

import asyncio
import json
import os
import pty
import re
from pathlib import Path

import pytest
import typer

from culture.cli.commands import assembled
from culture.cli.doctor.command import CHECKS
from culture.cli.doctor.inventory import Inventory
from culture.cli.doctor.runner import DoctorCheck, Finding, FindingSeverity, run_checks
from culture.protocol.vocabulary import Exit
from tests.cli.doctor.conftest import NICK, Patient
from tests.cli.shell import ROOT

SECRETS = ("hunter2-of-the-server", "of-the-link-to-thor", "token-of-the-agent", "of-an-operator", "hooks.example/abc")


def test_every_check_is_documented_and_no_other() -> None:
    page = (ROOT / "docs/server/doctor.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([a-z]+\.[a-z]+)` \|", page, re.MULTILINE) == [check.name for check in CHECKS]


def test_on_a_new_machine_it_says_how_to_begin(patient: Patient) -> None:
    patient.home.rmdir()
    result = patient.typed()
    assert result.code == Exit.DONE
    assert "culture up" in result.out and "1 hint" in result.out
    assert not patient.home.exists(), "looking makes nothing"


def test_what_it_tells_to_type_can_be_typed() -> None:
    root = typer.main.get_command(assembled())
    said = {
        words
        for file in (ROOT / "culture/cli/doctor").glob("*.py")
        for words in re.findall(r"`culture ([a-z]+)(?: ([a-z]+))?", file.read_text(encoding="utf-8"))
    }
    assert len(said) > 20
    for first, second in said:
        command = getattr(root, "commands", {})[first]
        assert not hasattr(command, "commands") or second in command.commands, f"culture {first} {second}"


async def test_where_all_is_well_it_says_so_and_ends_with_0(patient: Patient) -> None:
    await patient.serve()
    result = await patient.run()
    assert (result.code, result.err) == (Exit.DONE, "")
    assert f"{len(CHECKS)} checks in" in result.out
    assert "all is well" in result.out
    for area in {check.area for check in CHECKS}:
        assert area in result.out


async def test_what_is_wrong_is_grouped_with_what_to_type_and_ends_with_1(patient: Patient) -> None:
    patient.file("secrets/spark-bee", "token", mode=0o644)
    patient.file("tls/spark.key", "key", mode=0o640)
    result = await patient.run()
    assert result.code == Exit.FAILED
    assert result.out.index("files\n") < result.out.index("-> chmod 600") and "2 errors" in result.out
    assert "\x1b" not in result.out, "colours are for terminals"


def test_programs_get_everything_as_json(patient: Patient) -> None:
    patient.file("secrets/spark-bee", "token", mode=0o644)
    result = patient.typed("--json")
    said = json.loads(result.out)
    assert result.code == Exit.FAILED and said["worst"] == "error"
    assert {each["check"] for each in said["findings"]} == {check.name for check in CHECKS}
    [bad] = [each for each in said["findings"] if each["severity"] == "error"]
    assert bad["check"] == "files.secrets" and bad["next"].startswith("chmod 600") and bad["fixable"] is True


def test_fix_puts_right_what_can_be_without_loss(patient: Patient) -> None:
    secret = patient.file("secrets/spark-bee", "token", mode=0o644)
    stale = patient.file("run/spark.pid", "{}")
    result = patient.typed("--fix")
    assert result.code == Exit.DONE and result.out.count("fixed:") == 2
    assert secret.stat().st_mode & 0o777 == 0o600 and not stale.exists()


def test_no_secret_is_ever_shown(patient: Patient) -> None:
    server, link, token, operator, hook = SECRETS
    patient.file(
        "culture.yaml",
        f"name: spark\npassword: {server} #and-more\noperators: [{{name: ori, password: {operator}}}]\n"
        f"links:\n  - {{name: thor, secret: {link}}}\n  - {{name: odin, secret: {link}}}\n",
        mode=0o644,
    )
    patient.agents(webhooks={"url": f"https://{hook}"})
    patient.file(f"secrets/{NICK}", token, mode=0o644)
    for words in ((), ("--json",), ("--all",), ("--fix",)):
        result = patient.typed(*words)
        assert not [each for each in (*SECRETS, "and-more") if each in result.out + result.err]


@pytest.mark.parametrize(
    "line",
    [
        "password: 2024-13-45",
        "password: @hunter2",
        "password: *hunter2",
        "password: !hunter2 x",
        "password: [hunter2]",
        "pasword: hunter2",
        "operators: hunter2",
        "nick_prefix: hunter2",
    ],
)
def test_a_secret_that_yaml_chokes_on_is_not_shown(patient: Patient, line: str) -> None:
    patient.file("culture.yaml", f"name: spark\n{line}\n")
    result = patient.typed()
    assert result.code == Exit.FAILED
    assert not re.search("hunter2|2024", result.out + result.err)


async def test_on_a_terminal_it_is_coloured(patient: Patient) -> None:
    patient.file("secrets/spark-bee", "token", mode=0o644)
    outer, inner = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(patient.shell.python, "-m", "culture", "doctor"),
        env={"PYTHONPATH": str(ROOT), "PATH": os.defpath, "CULTURE_HOME": str(patient.home), "TERM": "xterm"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=inner,
    )
    os.close(inner)
    await process.wait()
    said = os.read(outer, 1 << 16).decode()
    os.close(outer)
    assert "\x1b[31m" in said


def test_a_check_that_fails_is_a_finding_and_the_others_go_on() -> None:
    def fails(scene: Inventory) -> list[Finding]:
        raise ValueError("with hunter2 in it")

    broken, well = DoctorCheck("some.thing", "fine", fails), DoctorCheck("other.thing", "fine", lambda scene: [])
    first, second = run_checks([broken, well], Inventory())
    assert first.worst is FindingSeverity.WARNING and "some.thing" in first.findings[0].what
    assert "hunter2" not in str(first.findings[0])
    assert second.worst is FindingSeverity.OK


def test_a_check_that_does_not_end_is_a_finding(tmp_path: Path) -> None:
    waits, goes_on = os.pipe()

    def hangs(scene: Inventory) -> list[Finding]:
        os.read(waits, 1)
        return []

    [outcome] = run_checks([DoctorCheck("some.thing", "fine", hangs)], Inventory(), patience=0.05)
    os.close(goes_on)
    assert outcome.worst is FindingSeverity.WARNING and "did not end" in outcome.findings[0].what


def test_what_cannot_be_mended_stays_and_says_why(patient: Patient) -> None:
    from culture.cli.doctor.runner import CheckOutcome, hint, repair

    gone = patient.home / "gone"
    outcome = CheckOutcome(CHECKS[0], (hint("x", "y", "z", gone.unlink),))
    assert "No such file" in repair(outcome).findings[0].why
