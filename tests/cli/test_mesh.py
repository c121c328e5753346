"""``culture mesh``: real processes; links made, changed and taken away while servers run."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from culture.protocol.vocabulary import Exit
from tests.cli.shell import Result, Shell
from tests.support.client import registered

SECRET = "correct-horse-battery"
WITHOUT_SKILLS = "history: {enabled: false}\nurlindex: {enabled: false}\nlogger: {enabled: false}\n"


class Two:
    """spark and thor, each with a home of its own."""

    def __init__(self, spark: Shell, thor: Shell, ports: dict[str, int]) -> None:
        self.spark = spark
        self.thor = thor
        self.ports = ports

    async def state(self, shell: Shell) -> list[dict[str, Any]]:
        result = await shell.run("mesh", "list", "--json")
        assert result.code == 0, result.err
        rows: list[dict[str, Any]] = json.loads(result.out)
        return rows

    async def until(self, shell: Shell, state: str) -> dict[str, Any]:
        """Wait until the only link of a server is so."""
        async with asyncio.timeout(30):
            while True:
                rows = await self.state(shell)
                if [row["state"] for row in rows] == [state]:
                    return rows[0]


@asynccontextmanager
async def two_servers(folder: Path) -> AsyncIterator[Two]:
    shells, ports = {}, {}
    try:
        for name in ("spark", "thor"):
            (folder / name).mkdir()
            shells[name] = Shell(folder / name)
            shells[name].write(f"name: {name}\n{WITHOUT_SKILLS}")
            _, ports[name] = await shells[name].serve()
        yield Two(shells["spark"], shells["thor"], ports)
    finally:
        for shell in shells.values():
            await shell.close()


def secret_in(folder: Path, secret: str = SECRET) -> Path:
    file = folder / f"{secret}.txt"
    file.write_text(f"{secret}\n")
    return file


async def done(shell: Shell, *words: str) -> Result:
    result = await shell.run("mesh", *words)
    assert result.code == 0, result.err
    return result


@pytest.mark.requirement("E01")
@pytest.mark.fault("D21")
async def test_two_running_servers_are_linked_and_parted(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as two:
        assert "no links" in (await done(two.spark, "list")).out
        made = tmp_path / "secret"
        said = await done(two.thor, "link", "spark", "--new-secret", str(made))
        assert made.stat().st_mode & 0o777 == 0o600
        secret = made.read_text().strip()
        assert secret not in said.out + said.err
        await done(two.spark, "link", "thor", f"127.0.0.1:{two.ports['thor']}", "--secret-file", str(made))
        linked = await two.until(two.spark, "linked")
        assert linked["name"] == "thor" and linked["trust"] == "full"
        assert "thor  linked for" in (await done(two.spark, "list")).out
        files = [each for shell in (two.spark, two.thor) for each in shell.home.rglob("links.json")]
        assert len(files) == 2 and all(each.stat().st_mode & 0o777 == 0o600 for each in files)
        async with registered(two.ports["spark"], "spark-ori") as ori, registered(two.ports["thor"], "thor-bob") as bob:
            await ori.join("#general")
            await bob.join("#general")
            await ori.expect("JOIN", "#general")
            await done(two.thor, "unlink", "spark")
            assert (await ori.expect("QUIT")).source.startswith("thor-bob!")
        assert (await two.state(two.thor)) == []
        assert "thor" in (await two.until(two.spark, "dialling"))["name"]


@pytest.mark.fault("D21")
async def test_a_secret_is_changed_in_two_steps(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as two:
        old, new = secret_in(tmp_path), secret_in(tmp_path, "another-horse-battery")
        await done(two.thor, "link", "spark", "--secret-file", str(old))
        await done(two.spark, "link", "thor", f"127.0.0.1:{two.ports['thor']}", "--secret-file", str(old))
        since = (await two.until(two.spark, "linked"))["since"]
        await done(two.spark, "rotate", "thor", "--secret-file", str(new))
        await done(two.thor, "rotate", "spark", "--secret-file", str(new))
        await done(two.spark, "rotate", "thor", "--finish")
        await done(two.thor, "rotate", "spark", "--finish")
        assert (await two.until(two.spark, "linked"))["since"] == since
        for shell in (two.spark, two.thor):
            [file] = shell.home.rglob("links.json")
            [link] = json.loads(file.read_text())["links"]
            assert link["secret"] == "another-horse-battery" and not link.get("old_secret")


async def test_what_culture_yaml_links_is_taken_away_too(shell: Shell, tmp_path: Path) -> None:
    shell.write(f"name: spark\nlinks:\n  - {{name: thor, secret: {SECRET}}}\n")
    assert "thor  not running, full" in (await done(shell, "list")).out
    assert "once the server runs" in (await done(shell, "unlink", "thor")).out
    assert "no links" in (await done(shell, "list")).out
    result = await shell.run("mesh", "unlink", "thor")
    assert result.code == Exit.FAILED and "no link to thor" in result.err
    await done(shell, "link", "thor", "--secret-file", str(secret_in(tmp_path)))
    assert "thor" in (await done(shell, "list")).out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("link", "spark"), "this server itself"),
        (("link", "Thor-2"), "begins the peer's nicks"),
        (("link", "thor", "nowhere"), "no address"),
        (("link", "thor", "10.0.0.2:6697"), "fingerprint"),
        (("link", "thor", "--trust", "restricted"), "name the channels"),
        (("link", "thor", "--channel", "#x"), "are for trust: restricted"),
        (("rotate", "odin"), "no link to odin"),
    ],
)
async def test_what_cannot_be_is_refused(shell: Shell, tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    shell.write("name: spark\n")
    result = await shell.run("mesh", *words, "--secret-file", str(secret_in(tmp_path)))
    assert result.code in (Exit.FAILED, Exit.USAGE) and why in result.err
    assert SECRET not in result.out + result.err and not list(shell.home.rglob("links.json"))


async def test_a_secret_is_no_argument_and_is_not_quoted(shell: Shell, tmp_path: Path) -> None:
    shell.write("name: spark\n")
    result = await shell.run("mesh", "link", "thor")
    assert result.code == Exit.USAGE and "no terminal" in result.err
    result = await shell.run("mesh", "link", "thor", "--secret-file", str(secret_in(tmp_path, "two:parts-of-it")))
    assert result.code == Exit.USAGE and "without spaces and colons" in result.err
    assert "parts-of-it" not in result.err.replace(str(tmp_path), "")
    result = await shell.run("mesh", "link", "thor", "--secret-file", str(tmp_path / "none"))
    assert result.code == Exit.FAILED and "cannot be read" in result.err


async def test_links_need_prefixes(shell: Shell) -> None:
    shell.write("name: spark\nnick_prefix: off\n")
    result = await shell.run("mesh", "list")
    assert result.code == Exit.FAILED and "nick_prefix: required" in result.err
