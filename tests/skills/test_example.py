"""The worked example of docs/server/skills.md: an outsider's package in a real server."""

import os
import shutil
import signal
import tomllib
from pathlib import Path

import pytest

from tests.cli.shell import ROOT, Shell
from tests.support.client import registered
from tests.support.skills import install

EXAMPLE = Path(__file__).parent / "example"
PAGE = (ROOT / "docs" / "server" / "skills.md").read_text(encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Where pip would have put the package: its module, and the entry points that its pyproject.toml names."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    folder = install(tmp_path / "site", project["name"], project["entry-points"]["culture.skills"])
    shutil.copy(EXAMPLE / "culture_dice.py", folder)
    return folder


@pytest.fixture
async def shell(tmp_path: Path, site: Path) -> Shell:
    """A terminal on a machine where the package is installed."""
    return Shell(tmp_path, {"PYTHONPATH": os.pathsep.join((str(ROOT), str(site)))})


@pytest.mark.requirement("D01", "D02", "D03", "D14")
async def test_a_skill_of_somebody_else_is_one_package_and_one_line(shell: Shell) -> None:
    shell.write("name: spark\nskills: {dice: {sides: 1}}\n")
    try:
        server, port = await shell.serve()
        async with registered(port, "spark-ori") as ori, registered(port, "spark-kim") as kim:
            await ori.join("#general")
            assert [str(each) for each in await ori.ask("ROLL")] == [":spark ROLL spark-ori 1"]
            (thrown,) = await kim.ask("roll 20")
            assert thrown.params[0] == "spark-kim" and 1 <= int(thrown.params[1]) <= 20
            (failed,) = await ori.ask("ROLL x")
            assert str(failed) == ":spark FAIL ROLL INVALID_SIDES x :A die has 1 to 1000 sides"
            for target, text in (("#general", "who has dice?"), ("#general", "hello"), ("spark-ori", "dice")):
                await ori.ask(f"PRIVMSG {target} :{text}")
            assert [str(each) for each in await kim.ask("ROLLS")] == [":spark ROLLS spark-kim 1"]
            (page,) = [each for each in await ori.ask("HELP ROLL") if each.verb == "704"]
            assert page.params[-1] == "ROLL [sides]"
        server.signal(signal.SIGTERM)
        assert await server.ended() == 0
        kept = shell.home / "data" / "spark" / "dice"
        assert kept.stat().st_mode & 0o777 == 0o700
        _, port = await shell.serve()
        async with registered(port, "spark-ori") as ori:
            assert [str(each) for each in await ori.ask("ROLLS")] == [":spark ROLLS spark-ori 1"]
    finally:
        await shell.close()


async def test_a_wrong_block_is_found_before_the_start(shell: Shell) -> None:
    file = shell.write("name: spark\nskills:\n  dice:\n    sides: 0\n")
    checked = await shell.run("config", "check")
    assert checked.code == 78
    assert f"{file}:4: skills.dice.sides: must be at least 1" in checked.err
    started = await shell.run("server", "start", "--foreground", "--port", "0")
    assert started.code == 78 and "culture: skills.dice.sides: must be at least 1" in started.err
    shell.write("name: spark\nskills:\n  dcie:\n")
    checked = await shell.run("config", "check")
    assert checked.code == 78
    assert f"{file}:3: skills.dcie: no skill of this name is installed; installed are " in checked.err
    assert "dice, " in checked.err
    shell.write("name: spark\nskills:\n  dice:\n")
    assert (await shell.run("config", "check")).code == 0


async def test_a_wrong_block_does_not_stop_a_server_that_runs(shell: Shell) -> None:
    shell.write("name: spark\n")
    try:
        assert (await shell.run("server", "start", "--port", "0")).code == 0
        note = shell.note()
        shell.write("name: spark\nskills: {dice: {sides: 0}}\n")
        assert (await shell.run("server", "restart")).code == 78
        assert shell.note() == note
    finally:
        await shell.close()


@pytest.mark.parametrize(("language", "file"), [("python", "culture_dice.py"), ("toml", "pyproject.toml")])
def test_the_page_shows_the_very_files(language: str, file: str) -> None:
    text = (EXAMPLE / file).read_text(encoding="utf-8")
    assert f"```{language}\n{text}```\n" in PAGE
