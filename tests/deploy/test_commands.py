"""What the containers run, run here: the same commands with the same settings, on other ports."""

import asyncio
import os
import re
import shlex
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.testing import CliRunner

from culture.cli.app import app
from tests.cli.shell import Process, Result, Shell
from tests.deploy import compose, dockerfile
from tests.deploy.test_files import DEPLOY, PARTS, ROOT, TEXT, VARIABLES
from tests.orchestrator.crew import end_members
from tests.support.client import connected, registered
from tests.support.ports import reserved
from tests.support.tls import client_context
from tests.support.waiting import PATIENCE

SERVICES: dict[str, Any] = compose.filled(compose.load(TEXT), VARIABLES)["services"]


def commands() -> Iterator[str]:
    """Every ``culture …`` of the files, without its first word."""
    for part in PARTS:
        yield " ".join(SERVICES[part]["command"])
        yield from ours(SERVICES[part]["healthcheck"]["test"])
        for each in dockerfile.read((DEPLOY / f"Dockerfile.{part}").read_text(encoding="utf-8")):
            if each.name == "CMD":
                yield " ".join(each.words)
            if each.name == "HEALTHCHECK":
                yield from ours(each.words)


def ours(words: list[str]) -> list[str]:
    """The commands of ours in a check."""
    return re.findall(r"(?:^|\s)culture ([a-z -]+[a-z])", " ".join(words).replace('"$CULTURE_TEAM"', "demo"))


ALL = sorted(set(commands()))


@pytest.mark.parametrize("line", ALL)
def test_every_command_of_the_images_is_one_of_ours(line: str) -> None:
    """Their options, too: --help comes first whatever else is said, but not before a word that is not known."""
    done = CliRunner().invoke(app, [*line.split(), "--help"])
    assert done.exit_code == 0, done.output


class Container(Shell):
    """What a container has: a home folder, the variables that compose gives, and the network that all share."""

    @property
    def home(self) -> Path:
        return self.folder / ".culture"


@dataclass
class Deployment:
    """The containers of the compose file as processes of this machine."""

    folder: Path
    ports: dict[str, str]
    shells: list[Container] = field(default_factory=list)

    def shell(self, part: str) -> Container:
        """Where the commands of a service are run."""
        said = {name: self.ports.get(value, value) for name, value in SERVICES[part].get("environment", {}).items()}
        volume = self.folder / SERVICES[part]["volumes"][0].split(":")[0]
        (volume / "run").mkdir(mode=0o700, parents=True, exist_ok=True)
        made = Container(volume, said)
        made.environment |= {"XDG_RUNTIME_DIR": str(volume / "run"), "CULTURE_HOME": str(made.home)}
        self.shells.append(made)
        return made

    async def run(self, part: str, *words: str, stdin: str = "") -> Result:
        """``docker compose run --rm <part> …``"""
        return await self.shell(part).run_with(stdin, *words)

    async def up(self, part: str) -> Process:
        """``docker compose up -d <part>``"""
        return await self.shell(part).spawn(*SERVICES[part]["command"])

    async def is_healthy(self, part: str) -> bool:
        """What the healthcheck says."""
        how, *words = SERVICES[part]["healthcheck"]["test"]
        for theirs, ours in self.ports.items():
            words = [word.replace(theirs, ours) for word in words]
        process = await asyncio.create_subprocess_exec(
            *(["sh", "-c", *words] if how == "CMD-SHELL" else words),
            cwd=self.folder,
            env=self.shell(part).environment
            | {"PATH": f"{self.programs}:{os.defpath}", "HOME": str(self.shell(part).folder)},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        return await process.wait() == 0

    @property
    def programs(self) -> Path:
        """Where an image has ``culture`` and ``python``."""
        folder = self.folder / "bin"
        if not folder.exists():
            folder.mkdir()
            for name, arguments in (("culture", "-m culture "), ("python", "")):
                command = f"PYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)}"
                text = f'#!/bin/sh\n{command} {arguments}"$@"\n'
                (folder / name).write_text(text, encoding="utf-8")
                (folder / name).chmod(0o755)
        return folder


@pytest.fixture
async def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Deployment]:
    """The volume with the server's settings in it, a certificate and somebody who may log in."""
    with reserved() as plain, reserved() as tls, reserved() as mcp:
        ports = {"6667": str(plain), "6697": str(tls), "8090": str(mcp)}
        made = Deployment(tmp_path, ports)
        for part, file in (("server", "culture.yaml"), ("orchestrator", "agents.yaml")):
            text = (DEPLOY / file).read_text(encoding="utf-8")
            for theirs, ours in ports.items():
                text = text.replace(f"port: {theirs}", f"port: {ours}")
            made.shell(part).write(text, file)
        yield made
        for shell in made.shells:
            await shell.close()
        home = made.shell("orchestrator").home
        monkeypatch.setenv("CULTURE_HOME", str(home))
        await end_members(home)


async def entered(deployment: Deployment) -> str:
    """A certificate and an account; the token to log in with."""
    assert (await deployment.run("server", "server", "cert", "--name", "localhost")).code == 0
    assert (await deployment.run("server", "account", "add", "ori", "--no-password")).code == 0
    return (await deployment.run("server", "account", "token", "ori")).out.split()[-1]


@pytest.mark.requirement("O27")
async def test_on_a_lan_that_is_trusted_the_server_needs_no_tls(deployment: Deployment) -> None:
    """O27: chathistory is on; for maxline there is multiline (decision 0003)."""
    plain = deployment.ports["6667"]
    text = f"name: spark\ntrusted_network: true\nlisten:\n  - host: 0.0.0.0\n    port: {plain}\n"
    deployment.shell("server").write(text)
    server = await deployment.up("server")
    await server.until(f"port {plain}")
    async with registered(int(plain), "spark-ori", "draft/chathistory draft/multiline batch") as ori:
        assert "001" in {line.verb for line in ori.seen}


@pytest.mark.timeout(180)
@pytest.mark.requirement("O01", "O28")
async def test_all_three_come_up_and_none_takes_another_with_it(deployment: Deployment, project: Path) -> None:
    """What compose runs, with its settings; then kill -9 for each of the three."""
    assert not await deployment.is_healthy("server")
    token = await entered(deployment)
    parts: dict[str, Process] = {"server": await deployment.up("server")}
    await parts["server"].until(f"port {deployment.ports['6697']}")
    async with connected(int(deployment.ports["6697"]), tls=client_context()) as ori:
        await ori.register("spark-ori", password=token)
    parts["bridge"] = await deployment.up("bridge")
    await parts["bridge"].until("MCP at ")
    logins = await deployment.run("server", "team", "logins", "demo", "--number", "3")
    assert [line.split()[0] for line in logins.out.splitlines()][:2] == ["spark-team-demo", "spark-Harper"]
    taken = await deployment.run("orchestrator", "team", "logins", "--take", stdin=logins.out)
    assert taken.out == "5 logins are stored.\n"
    made = await deployment.run("orchestrator", "team", "init", str(project), "--slug", "demo", "--agent", "scripted")
    assert made.code == 0, made.err
    assert not await deployment.is_healthy("orchestrator")
    parts["orchestrator"] = await deployment.up("orchestrator")
    await parts["orchestrator"].until("The team demo is at work")
    assert await healthy(deployment) == {*PARTS}
    assert await asks_for_a_token(deployment)
    for dead in ("bridge", "server", "orchestrator"):
        await parts.pop(dead).kill()
        assert await healthy(deployment, *parts) == parts.keys(), f"after {dead}"
    theirs = deployment.shell("orchestrator").home
    assert not {"accounts.json", "culture.yaml", "data", "tls"} & {each.name for each in theirs.iterdir()}
    again = await deployment.up("server")
    await again.until(f"port {deployment.ports['6697']}")
    stopped = await deployment.run("orchestrator", "team", "down", "--team", "demo")
    assert "spark-Harper" in stopped.out


async def healthy(deployment: Deployment, *parts: str) -> set[str]:
    looked_at = parts or PARTS
    said = await asyncio.gather(*(deployment.is_healthy(part) for part in looked_at))
    return {part for part, is_healthy in zip(looked_at, said, strict=True) if is_healthy}


async def asks_for_a_token(deployment: Deployment) -> bool:
    url = f"http://127.0.0.1:{deployment.ports['8090']}/mcp"
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    async with httpx2.AsyncClient(timeout=PATIENCE) as http:
        without = await http.post(url, json=call)
        token = (await deployment.run("bridge", "bridge", "token", "add", "ori-delegate")).out.split()[0]
        with_it = await http.post(url, json=call, headers={"Authorization": f"Bearer {token}"})
    return without.status_code == 401 and with_it.status_code not in (401, 403, 421)
