"""Which command is right for which copy, and the other program of the name `culture`."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from culture.config.installation import Installer, installation, installed_in, installed_version, name_conflict
from tests.support.without import python_without
from tests.test_repository import ROOT, tracked

ENTRY_POINTS = "[console_scripts]\nculture = culture.__main__:main\n"
WHEEL = "file:///w/culture_mesh-0.1.0-py3-none-any.whl"


def packages(folder: Path, *names: str, **texts: str) -> Path:
    """A folder of packages with these entries; ``texts`` are files of the first one."""
    site = folder / "lib" / "python3.11" / "site-packages"
    for name in names:
        (site / name).mkdir(parents=True)
    for file, text in texts.items():
        (site / names[0] / {"url": "direct_url.json", "points": "entry_points.txt"}[file]).write_text(text)
    return site


def origin(url: str, editable: bool = False) -> str:
    return json.dumps({"url": url, "dir_info": {"editable": True} if editable else {}})


def test_a_copy_from_a_wheel_is_extended_and_upgraded_by_its_pip(tmp_path: Path) -> None:
    site = packages(tmp_path, "culture_mesh-0.1.0.dist-info", "pip", url=origin(WHEEL))
    copy = installed_in(tmp_path, [site], "/v/python", site)
    assert copy.extend("bridge") == "/v/python -m pip install 'culture-mesh[bridge]'"
    assert copy.upgrade() == f"/v/python -m pip install --upgrade 'culture-mesh @ {WHEEL}'"
    assert copy.restore("culture").startswith("/v/python -m pip uninstall --yes culture && ")


def test_a_copy_from_an_index_is_named_without_an_address(tmp_path: Path) -> None:
    site = packages(tmp_path, "culture_mesh-0.2.0.dist-info", "pip")
    copy = installed_in(tmp_path, [site], "/v/python", site)
    assert copy.upgrade() == "/v/python -m pip install --upgrade culture-mesh"


def test_an_environment_without_pip_is_left_to_uv(tmp_path: Path) -> None:
    site = packages(tmp_path, "culture_mesh-0.1.0.dist-info")
    copy = installed_in(tmp_path, [site], "/v/python", site)
    assert copy.extend("acp", "bridge") == "uv pip install --python /v/python 'culture-mesh[acp,bridge]'"


def test_an_editable_copy_in_another_environment_is_extended_from_its_folder(tmp_path: Path) -> None:
    source = tmp_path / "my clone"
    site = packages(tmp_path, "culture_mesh-0.1.0.dist-info", "pip", url=origin(source.as_uri(), editable=True))
    copy = installed_in(tmp_path, [site], "/v/python", source)
    assert copy.extend("acp") == f"/v/python -m pip install --editable '{source}[acp]'"


def test_the_environment_of_a_clone_is_left_to_make(tmp_path: Path) -> None:
    source = tmp_path / "my clone"
    site = packages(source / ".venv", "culture_mesh-0.1.0.dist-info", "pip", url=origin(source.as_uri(), editable=True))
    (source / "Makefile").touch()
    copy = installed_in(source / ".venv", [site], "/v/python", source)
    assert copy.extend("postgres") == f"make -C '{source}' postgres"
    assert copy.upgrade() == f"make -C '{source}' env"


@pytest.mark.parametrize(
    ("receipt", "text", "extend", "upgrade"),
    [
        (
            "uv-receipt.toml",
            '[tool]\nrequirements = [{ name = "culture-mesh", extras = ["claude", "acp"], path = "/w" }]\n',
            f"uv tool install --force 'culture-mesh[acp,bridge,claude] @ {WHEEL}'",
            "uv tool upgrade culture-mesh",
        ),
        (
            "uv-receipt.toml",
            '[tool]\nrequirements = [{ name = "culture-mesh", path = "/w" }]\n',
            f"uv tool install --force 'culture-mesh[bridge] @ {WHEEL}'",
            "uv tool upgrade culture-mesh",
        ),
        (
            "pipx_metadata.json",
            '{"injected": [], "main_package": {\n"package_or_url": "culture-mesh[claude] @ file:///w"}}',
            f"pipx install --force 'culture-mesh[bridge,claude] @ {WHEEL}'",
            "pipx upgrade culture-mesh",
        ),
        (
            "pipx_metadata.json",
            '{"injected": [], "main_package": {\n"package_or_url": "/w.whl",\n "x": []}}',
            f"pipx install --force 'culture-mesh[bridge] @ {WHEEL}'",
            "pipx upgrade culture-mesh",
        ),
    ],
    ids=["uv with extras", "uv", "pipx with extras", "pipx"],
)
def test_a_tool_keeps_the_extras_it_has(tmp_path: Path, receipt: str, text: str, extend: str, upgrade: str) -> None:
    site = packages(tmp_path, "culture_mesh-0.1.0.dist-info", url=origin(WHEEL))
    (tmp_path / receipt).write_text(text)
    copy = installed_in(tmp_path, [site], "/v/python", site)
    assert (copy.extend("bridge"), copy.upgrade()) == (extend, upgrade)


def test_the_copy_under_test_is_a_clone() -> None:
    """An environment that was made before the distribution had its name has no version of it."""
    assert installation().checkout == ROOT
    assert installed_version() in (None, "0.1.0")
    assert installation().installer in (Installer.MAKE, Installer.PIP, Installer.UV)


def test_another_program_of_the_name_is_recognised(tmp_path: Path) -> None:
    site = packages(tmp_path, "culture-14.9.0.dist-info", "culture_mesh-0.1.0.dist-info", points=ENTRY_POINTS)
    conflict = name_conflict([tmp_path / "nowhere", site])
    assert conflict is not None and (conflict.version, conflict.folder) == ("14.9.0", site)
    assert name_conflict([packages(tmp_path / "egg", "Culture-14.9-py3.11.egg-info")]) is not None
    assert name_conflict([packages(tmp_path / "same version", "culture-0.1.0.dist-info")]) is not None


def test_our_own_distribution_under_its_former_name_is_no_other_program(tmp_path: Path) -> None:
    assert name_conflict([packages(tmp_path, "culture-0.1.0.dist-info", points=ENTRY_POINTS)]) is None
    assert (
        name_conflict([packages(tmp_path / "skill", "culture_dice-1.0.dist-info", "culture-dice-1.0.dist-info")])
        is None
    )


def test_the_check_for_another_program_takes_less_than_two_milliseconds() -> None:
    """The best of several: other programs share the processor."""

    def seconds() -> float:
        begin = time.perf_counter()
        name_conflict()
        return time.perf_counter() - begin

    assert min(seconds() for _ in range(10)) < 0.002


@pytest.fixture(scope="module")
def python_with_conflict(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An environment in which the other program is installed as well."""
    folder = tmp_path_factory.mktemp("conflict")
    python = python_without(folder / "env")
    (site,) = (folder / "env").glob("lib/python*/site-packages")
    (site / "culture-14.9.0.dist-info").mkdir()
    return python


def run(python: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([python, *words], capture_output=True, text=True, timeout=60, check=False)


def test_the_command_line_does_not_start_beside_another_program_of_its_name(python_with_conflict: str) -> None:
    refused = run(python_with_conflict, "-m", "culture", "status")
    assert refused.returncode == 78 and refused.stdout == ""
    assert "another program called culture (culture 14.9.0) is installed in" in refused.stderr
    assert f"{python_with_conflict} -m pip uninstall --yes culture && " in refused.stderr


def test_the_agents_tool_is_not_stopped_by_another_program(python_with_conflict: str) -> None:
    """Agents must be able to go on: what is wrong is for the person who starts something."""
    answer = run(python_with_conflict, "-m", "culture.clients.shared.skill.irc_client", "whois", "--help")
    assert "another program" not in answer.stderr


FORBIDDEN = re.compile(
    r"""(?:pip3?|pipx|uv(?: tool| pip)?)\s+(?:install|add|upgrade|run|inject)\b[^`\n|&]*?"""
    r"""(?<![\w./@-])['"]?culture(?=[\[\s'"`=<>~!@.,)]|$)"""
    r"""|\buvx\s+(?:--from\s+)?['"]?culture(?![\w-])"""
    r"""|\bculture\[[a-z,]+\](?!['"]?\s+is not)"""
)
NAME = "culture"


def test_no_text_names_a_command_that_installs_the_other_program() -> None:
    found = []
    for path in tracked():
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
            if FORBIDDEN.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        f"pip install {NAME}",
        f"python -m pip install --upgrade {NAME} (in a clone",
        f"uv tool install {NAME}",
        f"`pip install '{NAME}[bridge]'`",
        f'pip install "{NAME}[semantic]"',
        f"pipx install {NAME}.",
        f"uvx {NAME} up",
    ],
)
def test_a_command_that_installs_the_other_program_is_found(line: str) -> None:
    assert FORBIDDEN.search(line)


@pytest.mark.parametrize(
    "line",
    [
        "pip install ./culture-dice",
        "pip install 'culture-mesh[bridge]'",
        "pip uninstall culture",
    ],
)
def test_other_commands_are_allowed(line: str) -> None:
    assert FORBIDDEN.search(line) is None


def test_the_interpreter_of_the_tests_is_the_one_that_is_named() -> None:
    assert installation().python == sys.executable
