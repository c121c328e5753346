"""The use cases of examples/ do what their pages say, and leave nothing running."""

import asyncio
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
LONG = 2.5 * PATIENCE


class Said(NamedTuple):
    """A message as the history has it."""

    nick: str
    text: str


@dataclass(frozen=True)
class Played:
    """What an example leaves in the folder it was told to keep."""

    home: Path
    output: str

    def said(self, channel: str) -> list[Said]:
        """What was said in a channel, from the server's own history."""
        lines = _culture(self.home, "history", "export", "--channel", channel).splitlines()
        entries = [json.loads(line) for line in lines]
        return [Said(each["source"].partition("!")[0], each["text"]) for each in entries if each["verb"] == "PRIVMSG"]


async def played(name: str, home: Path) -> Played:
    """Run an example to its end, in a folder that is kept; no process of it is left."""
    process = await asyncio.create_subprocess_exec(
        *(str(ROOT / "examples" / "run"), name, "--home", str(home)),
        env={"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(home)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(LONG):
        output = (await process.communicate())[0].decode()
    assert process.returncode == 0, output
    assert _alive_in(home) == []
    return Played(home, output)


def _alive_in(home: Path) -> list[str]:
    """The processes whose home the folder is."""
    wanted, found = f"HOME={home}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def _culture(home: Path, *words: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "CULTURE_HOME": str(home / ".culture")}
    command = [sys.executable, "-m", "culture", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout


def _git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.requirement("A25")
async def test_three_agents_explore_one_question_and_share_commits_by_link(tmp_path: Path) -> None:
    explored = await played("explore", tmp_path / "home")
    said = explored.said("#explore")
    shared = {nick: re.search(r"/commit/([0-9a-f]{40}) .*: ([\d.]+) ms$", text) for nick, text in said[1:4]}
    assert set(shared) == {"spark-ada", "spark-bo", "spark-cy"}
    commits = {nick: found[1] for nick, found in shared.items() if found}
    tree = explored.home / "explore"
    for name in ("ada", "bo", "cy"):
        commit = commits[f"spark-{name}"]
        assert _git(tree / name, "symbolic-ref", "--short", "HEAD") == name
        assert _git(tree / "main", "show", "-s", "--format=%an", commit) == name
        assert _git(tree / "main", "branch", "--format=%(refname:short)", "--contains", commit) == name
    times = {nick: float(found[2]) for nick, found in shared.items() if found}
    fastest = min(times, key=lambda nick: times[nick])
    verdict = said[-1]
    assert verdict.nick == "spark-ada"
    assert verdict.text.startswith(f"{fastest.removeprefix('spark-')} was fastest")
    assert (tree / "ada" / "count.py").read_text() == _git(tree / "main", "show", f"{commits[fastest]}:count.py") + "\n"
    assert _git(tree / "ada", "status", "--porcelain") == ""
    index = re.findall(r"^  http\S+/commit/([0-9a-f]{40})  (\d) times, last by (\S+)$", explored.output, re.MULTILINE)
    assert {commit: (times, nick) for commit, times, nick in index} == {
        commit: ("2", "spark-ada") if nick == fastest else ("1", nick) for nick, commit in commits.items()
    }


@pytest.mark.requirement("A26")
async def test_everyone_in_the_room_does_the_task_and_the_results_are_compared(tmp_path: Path) -> None:
    done = await played("broadcast", tmp_path / "home")
    task, *results = done.said("#bench")
    assert task.text.startswith("@all Everyone benchmark")
    assert {nick for nick, _ in results} == {"spark-zlib", "spark-bz2", "spark-lzma"}
    figures = {nick: re.fullmatch(r"RESULT \w+: ([\d.]+) % of the size, ([\d.]+) ms", text) for nick, text in results}
    asked, table = done.said("#results")
    assert (asked.nick, table.nick) == ("spark-ori", "spark-clerk")
    title, *rows = table.text.split("\n")
    assert title == "3 results, the smallest first:"
    assert [row.split() for row in rows] == sorted(
        ([nick.removeprefix("spark-"), found[1], "%", found[2], "ms"] for nick, found in figures.items() if found),
        key=lambda row: float(row[1]),
    )


@pytest.mark.requirement("A27")
async def test_an_agent_finds_out_for_another_from_history_and_else_live(tmp_path: Path) -> None:
    done = await played("recall", tmp_path / "home")
    said = done.said("#builds")
    known, asked = said[0].text, [each for each in said if each.text.startswith("[QUESTION]")]
    # Memo is asked three times, and asks thor once, for what nobody had said.
    assert [(nick, text.split()[1]) for nick, text in asked] == [
        ("spark-dev", "@spark-memo"),
        ("spark-dev", "@spark-memo"),
        ("spark-memo", "@spark-thor"),
        ("spark-dev", "@spark-memo"),
    ]
    [live] = [text for nick, text in said if nick == "spark-thor"]
    assert re.fullmatch(r"@spark-memo free memory on thor: \d+ MB", live)
    figure = live.rpartition(": ")[2]
    answers = [text for nick, text in said if nick == "spark-memo" and not text.startswith("[QUESTION]")]
    assert answers[0].startswith("@spark-dev From the history: [") and answers[0].endswith(f"<spark-ori> {known}")
    assert answers[1] == f"@spark-dev Nobody had said, so I asked: free memory on thor: {figure}"
    assert answers[2].startswith("@spark-dev From the history: [") and answers[2].endswith(f"<spark-thor> {live}")
    told = [text for nick, text in said if nick == "spark-dev" and text.startswith("spark-ori: ")]
    assert [text.removeprefix("spark-ori: ") for text in told] == [text.removeprefix("@spark-dev ") for text in answers]


def test_every_example_has_its_page_and_no_other_name_runs() -> None:
    names = {file.parent.name for file in (ROOT / "examples").glob("*/__main__.py")}
    pages = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    for name in names:
        assert f"](../examples/{name}/README.md)" in pages
        assert f"examples/run {name}" in (ROOT / "examples" / name / "README.md").read_text(encoding="utf-8")
    ended = subprocess.run([ROOT / "examples" / "run", "nothing"], capture_output=True, text=True)
    assert ended.returncode == 2
    assert all(f"examples/run {name}" in ended.stderr for name in names)
