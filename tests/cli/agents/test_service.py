"""``culture service``: units of systemd."""

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from typer.testing import CliRunner

import culture.clients.claude
from culture.cli.agents.service import (
    BRIDGE_UNIT,
    SERVER_UNIT,
    for_agent,
    for_bridge,
    for_server,
    for_team,
    quoted,
    team_unit,
)
from culture.cli.app import assembled
from tests.cli.agents.conftest import NICK, Machine

SAMPLE = Path(culture.clients.claude.__file__).parent / "culture.service"


def settings(unit: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in unit.splitlines() if re.match(r"[A-Z]\w*=", line))


@pytest.mark.fault("E3")
@pytest.mark.requirement("G12")
async def test_a_unit_has_the_paths_of_this_machine(machine: Machine) -> None:
    """G12: systemd restarts the daemon; E3: but never one whose configuration is wrong."""
    machine.agents({"nick": NICK})
    folder = machine.shell.folder / "units"
    written = await machine.run("service", "install", NICK, "--server", "--folder", str(folder))
    assert written.code == 0, written.err
    assert f"systemctl --user enable --now culture-server.service culture@{NICK}.service" in written.out.replace(
        "  ", " "
    )
    unit = (folder / f"culture@{NICK}.service").read_text()
    found = settings(unit)
    assert found["Type"] == "notify" and found["RestartPreventExitStatus"] == "78" and found["Restart"] == "on-failure"
    assert found["ExecStart"] == f"{quoted(sys.executable)} -m culture start --foreground {NICK}"
    assert f"Environment=CULTURE_HOME={machine.home}" in unit and "User=" not in unit
    sample = settings(SAMPLE.read_text())
    assert {key: found[key] for key in sample if key not in ("Description", "ExecStart", "After")} == {
        key: value for key, value in sample.items() if key not in ("Description", "ExecStart", "After")
    }
    assert "server start --foreground" in (folder / "culture-server.service").read_text()
    assert (await machine.run("service", "install", NICK, "--print")).out == unit
    removed = await machine.run("service", "uninstall", "--all", "--server", "--folder", str(folder))
    assert removed.code == 0 and not list(folder.iterdir())
    assert "nothing to remove" in (await machine.run("service", "uninstall", NICK, "--folder", str(folder))).out


async def test_by_default_it_goes_where_systemd_looks_for_the_users_units(machine: Machine) -> None:
    machine.agents({"nick": NICK})
    written = await machine.run("service", "install", "--all")
    assert (machine.shell.folder / ".config/systemd/user" / f"culture@{NICK}.service").exists()
    assert "systemctl --user daemon-reload" in written.out
    system = await machine.run("service", "install", "--all", "--system", "--print")
    assert "WantedBy=multi-user.target" in system.out and "\nUser=" in system.out
    assert (await machine.run("service", "install")).code == 2


def test_units_are_installed_for_a_user_id_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs with any uid."""

    def nobody(uid: int) -> NoReturn:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setenv("CULTURE_HOME", str(tmp_path))
    monkeypatch.setattr("pwd.getpwuid", nobody)
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    uid = str(os.geteuid())
    agents = [{"nick": NICK, "user": uid, "directory": str(tmp_path), "channels": ["#general"]}]
    (tmp_path / "agents.yaml").write_text(json.dumps({"agents": agents}))
    printed = CliRunner().invoke(assembled(), ["service", "install", NICK, "--system", "--print"])
    assert printed.exit_code == 0, printed.output
    assert settings(printed.output)["User"] == uid


async def test_the_bridge_and_a_team_have_units_too(machine: Machine, tmp_path: Path) -> None:
    """Secrets stay where they are, and the members of a team outlive its orchestrator."""
    project, folder = tmp_path / "demo", machine.shell.folder / "units"
    project.mkdir()
    (machine.home / "team" / "demo").mkdir(parents=True)
    machine.shell.write(f"slug: demo\nproject_dir: {project}\n", "team/demo/team.yaml")
    machine.shell.environment |= {"MCP_PORT": "9090", "IRC_TOKEN": "geheim"}
    words = ("--bridge", "--team", "demo", "--folder", str(folder))
    written = await machine.run("service", "install", *words)
    assert "enable --now culture-bridge.service culture-team@demo.service" in written.out, written.err
    bridge = (folder / "culture-bridge.service").read_text()
    assert settings(bridge)["ExecStart"].endswith("-m culture bridge serve") and "NoNewPrivileges=yes" in bridge
    assert "Environment=MCP_PORT=9090" in bridge and "geheim" not in bridge
    team = settings((folder / "culture-team@demo.service").read_text())
    assert team["ExecStart"].endswith("-m culture team up --team demo") and team["KillMode"] == "process"
    assert (
        "there is no team dema; did you mean demo?" in (await machine.run("service", "install", "--team", "dema")).err
    )
    assert (await machine.run("service", "uninstall", *words)).code == 0 and not list(folder.iterdir())


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("system", [True, False], ids=["system", "user"])
def test_systemd_finds_nothing_wrong_with_them(tmp_path: Path, system: bool) -> None:
    units = {
        f"culture@{NICK}.service": for_agent(NICK, system),
        SERVER_UNIT: for_server(system),
        BRIDGE_UNIT: for_bridge(system),
        team_unit("demo"): for_team("demo", system),
    }
    for name, text in units.items():
        (tmp_path / name).write_text(text)
    files = [str(tmp_path / name) for name in units]
    said = subprocess.run(["systemd-analyze", "verify", *files], capture_output=True, text=True, check=False).stderr
    # Whoever runs these tests as nobody is told that services should not.
    known = ("not-found", "Special user nobody")
    assert not [line for line in said.splitlines() if "culture" in line and not any(each in line for each in known)]


@pytest.mark.requirement("G12")
async def test_systemd_is_told_when_the_agent_is_there(machine: Machine, tmp_path: Path) -> None:
    """``Type=notify``: READY=1 comes when the agent takes prompts, STOPPING=1 when it ends."""
    machine.agents({"nick": NICK})
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(address)
        supervisor.setblocking(False)
        machine.shell.environment["NOTIFY_SOCKET"] = address
        await machine.shell.spawn("start", "--foreground", NICK)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(30):
            assert await loop.sock_recv(supervisor, 100) == b"READY=1"
        note = machine.daemon()
        assert note is not None and note.ready
        assert (machine.home / "secrets" / NICK).exists()
        del machine.shell.environment["NOTIFY_SOCKET"]
        await machine.run("stop", NICK)
        async with asyncio.timeout(30):
            assert await loop.sock_recv(supervisor, 100) == b"STOPPING=1"


@pytest.mark.parametrize(
    ("word", "expected"), [("plain", "plain"), ("two words", '"two words"'), ("50%", '"50%%"'), ('a"b', '"a\\"b"')]
)
def test_words_are_quoted_as_systemd_reads_them(word: str, expected: str) -> None:
    assert quoted(word) == expected
