"""What the repository as a whole promises: licence, dependencies, workflow, and nothing of one machine in it."""

import ast
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.client import registered
from tests.support.makefile import clone, make, program
from tests.support.servers import serving
from tests.test_architecture import tree_with

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# Written in pieces, so that this file does not hold them.
REGISTRIES = ["pypi" + ".org", "python" + "hosted", "npm" + "js.", "/simple" + "/", "pip." + "conf"]
FOUNDING_SAMPLES = ROOT / "tests" / "config" / "samples"  # kept as the founding documents have them
MACHINE_PATHS = re.compile("|".join(["/" + name + "/" for name in ("work", "root", "home/[a-z]+", "opt", "Users")]))


def tracked() -> list[Path]:
    """The text files under version control, and new ones that are not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    paths = [ROOT / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    return [path for path in paths if path.is_file() and b"\0" not in path.read_bytes()[:1024]]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_nothing_of_a_machine_or_a_registry_is_kept() -> None:
    found = []
    for path in tracked():
        if path.is_relative_to(FOUNDING_SAMPLES):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
            if MACHINE_PATHS.search(line) or any(host in line for host in REGISTRIES):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert found == []


def test_constraints_pin_versions_and_name_no_place() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"#.*|[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)] == []


def test_what_is_fetched_to_build_and_to_test_has_exact_versions() -> None:
    """The build backend and the agent programs of the tests; tests/deploy looks at the images."""
    assert [name for name in PYPROJECT["build-system"]["requires"] if not re.fullmatch(r"[a-z-]+==[0-9.]+", name)] == []
    agents = [json.loads(file.read_text()) for file in sorted((ROOT / "tests" / "agents").glob("*/package.json"))]
    versions = [version for each in agents for version in each["dependencies"].values()]
    assert versions and all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions)


def test_constraints_cover_every_dependency() -> None:
    project = PYPROJECT["project"]
    wanted = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    names = {re.split(r"[^A-Za-z0-9._-]", requirement)[0] for requirement in wanted} - {"culture-mesh"}
    pinned = {line.split("==")[0] for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()}
    assert names - pinned == set()


@pytest.mark.requirement("A02")
def test_the_licence_is_mit() -> None:
    """A02"""
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert text.startswith("MIT License\n") and "the culture authors" in text
    assert "without restriction, including without limitation the rights" in text
    assert PYPROJECT["project"]["license"] == "MIT"
    assert PYPROJECT["project"]["license-files"] == ["LICENSE"]


@pytest.mark.requirement("A23")
def test_external_packages_are_declared_and_installed_with_uv(tmp_path: Path) -> None:
    """A23: where uv is there, it makes the environment, from pyproject.toml and the constraints."""
    log = tmp_path / "uv.log"
    uv = program(
        tmp_path / "bin" / "uv",
        f"""echo "$@" >> '{log}'
        [ "$1" != venv ] || {{ mkdir -p .venv/bin && ln -s '{sys.executable}' .venv/bin/python; }}""",
    )
    made = make(clone(tmp_path / "clone"), "env", PATH=f"{uv.parent}:{os.environ['PATH']}")
    assert made.returncode == 0, made.stderr
    first, second = log.read_text().splitlines()
    assert re.fullmatch(r"venv --quiet --allow-existing --python python3\S* \.venv", first)
    assert second == "pip install --quiet --python .venv/bin/python -c constraints.txt -e .[dev]"
    assert PYPROJECT["project"]["dependencies"]
    for package in PYPROJECT["tool"]["assimilai"]["packages"]:
        assert package["path"].startswith("packages/") and (ROOT / package["path"]).is_dir()


@pytest.mark.requirement("A24")
def test_the_git_workflow_is_written_down() -> None:
    """A24: branch, push, agentic review, reply to comments, resolve threads, in this order."""
    steps = re.findall(r"^\d\. \*\*(.+?)\*\*", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    wanted = ["branch", "push", "agentic review", "reply to comments", "resolve the threads"]
    assert [step.lower() for step in steps] == wanted


@pytest.mark.requirement("A01")
async def test_the_code_is_python_and_serves_from_asyncio(tmp_path: Path) -> None:
    """A01"""
    page = {ROOT / "culture" / "web" / folder for folder in ("static", "templates", "vendor")}  # what browsers read
    files = [path for path in (ROOT / "culture").rglob("*") if path.is_file() and page.isdisjoint(path.parents)]
    suffixes = {path.suffix for path in files}
    data = {".json", ".md", ".typed", ".yaml", ".service", ".txt"}  # plugins, pages, playbooks, units, prompts
    assert suffixes <= {".py", ".pyc"} | data
    assert type(asyncio.get_running_loop()).__module__.startswith("asyncio.")
    async with serving(tmp_path) as ircd, registered(ircd.port, "spark-ori") as ori:
        assert await ori.ask("PRIVMSG spark-ori :hello") != []


def imports(path: Path) -> set[str]:
    """The modules a test imports, if one of them may be a mock."""
    names: set[str] = set()
    for node in ast.walk(tree_with(path.read_text(encoding="utf-8"), "mock")):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


@pytest.mark.requirement("A31")
async def test_tests_talk_to_real_servers_on_free_ports(tmp_path: Path) -> None:
    """A31: pytest and pytest-asyncio; no mock of the server; real instances, real TCP."""
    tests = PYPROJECT["project"]["optional-dependencies"]["test"]
    assert {"pytest", "pytest-asyncio"} <= {re.split("[>=<]", name)[0] for name in tests}
    mocks = {"unittest.mock", "mock", "pytest_mock"}
    assert [path.name for path in sorted((ROOT / "tests").rglob("*.py")) if imports(path) & mocks] == []
    async with serving(tmp_path / "one") as one, serving(tmp_path / "two") as two:
        assert one.port != two.port
        for ircd in (one, two):
            async with registered(ircd.port, "spark-ori") as ori:
                assert ori.writer.get_extra_info("peername") == ("127.0.0.1", ircd.port)


def test_every_make_target_explains_itself() -> None:
    said = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    wanted = ["up", "test", "proof", "bench", "lint", "types", "requirements", "packages", "irctest", "env", "help"]
    assert [target for target in wanted if f"make {target} " not in said] == []


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "culture").rglob("*.md")]
    dead = []
    for page in pages:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if "://" not in target and not (page.parent / target).exists():
                dead.append(f"{page.relative_to(ROOT)} → {target}")
    assert dead == []
