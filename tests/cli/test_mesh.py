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
    file.chmod(0o600)
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
    """D21: the link stays up all the while, also when the secret that it was made by is forgotten."""
    async with two_servers(tmp_path) as two:
        old, new = secret_in(tmp_path), secret_in(tmp_path, "another-horse-battery")
        await done(two.thor, "link", "spark", "--secret-file", str(old))
        await done(two.spark, "link", "thor", f"127.0.0.1:{two.ports['thor']}", "--secret-file", str(old))
        since = (await two.until(two.spark, "linked"))["since"]
        said = await done(two.spark, "rotate", "thor", "--secret-file", str(new))
        assert f"culture mesh rotate spark --secret-file {new}\n" in said.out and "rotate thor --finish" in said.out
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
    assert "thor  not linked, since this server does not run, trust full" in (await done(shell, "list")).out
    assert "once spark runs" in (await done(shell, "unlink", "thor")).out
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
        (("link", "thor", "nowhere"), "is not an address"),
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


async def test_a_secret_that_others_may_read_is_said_so(shell: Shell, tmp_path: Path) -> None:
    shell.write("name: spark\n")
    file = secret_in(tmp_path)
    for mode, is_open in ((0o600, False), (0o644, True)):
        file.chmod(mode)
        said = await done(shell, "link", "thor", "--secret-file", str(file))
        assert ("Other users of this machine can read" in said.err) is is_open


async def test_links_need_prefixes(shell: Shell) -> None:
    shell.write("name: spark\nnick_prefix: off\n")
    result = await shell.run("mesh", "list")
    assert result.code == Exit.FAILED and "nick_prefix: required" in result.err


async def test_a_server_of_another_name_is_not_meant_by_guess(shell: Shell, tmp_path: Path) -> None:
    await shell.serve("--name", "spark")
    refused = await shell.run("mesh", "link", "thor", "--secret-file", str(secret_in(tmp_path)))
    assert refused.code == Exit.USAGE and "Say --name spark" in refused.err
    assert not list(shell.home.rglob("links.json"))
    await done(shell, "link", "thor", "--name", "spark", "--secret-file", str(secret_in(tmp_path)))
    assert [each.parts[-3] for each in shell.home.rglob("links.json")] == ["spark"]
    shell.write("name: odin\n")
    assert "no links" in (await done(shell, "list")).out


async def test_what_is_not_said_of_a_link_stays_as_it_is(shell: Shell, tmp_path: Path) -> None:
    shell.write("name: spark\n")
    fine, secret = "ab" * 32, ("--secret-file", str(secret_in(tmp_path)))
    restricted = ("--trust", "restricted", "--channel", "#help")
    said = await done(shell, "link", "thor", "10.0.0.2:6697", *secret, "--fingerprint", fine, *restricted)
    assert "thor is dialled at 10.0.0.2:6697, trust restricted to #help, once spark runs" in said.out
    said = await done(shell, "link", "thor", "10.0.0.3:6697")
    assert "10.0.0.3:6697, trust restricted to #help" in said.out
    [file] = shell.home.rglob("links.json")
    [link] = json.loads(file.read_text())["links"]
    assert (link["secret"], link["fingerprint"], link["channels"]) == (SECRET, fine, ["#help"])
    assert "trust restricted to #help" in (await done(shell, "list")).out
    assert "trust no_authority," in (await done(shell, "link", "thor", "--trust", "no_authority")).out
    await done(shell, "unlink", "thor")
    assert "is let in when it dials, trust full" in (await done(shell, "link", "thor", *secret)).out


async def test_who_makes_a_secret_is_told_what_the_other_side_types(shell: Shell, tmp_path: Path) -> None:
    shell.write("name: spark\nlisten: [{port: 7000}]\n")
    said = await done(shell, "link", "thor", "--new-secret", str(tmp_path / "one"))
    assert f"culture mesh link spark 127.0.0.1:7000 --secret-file {tmp_path / 'one'}\n" in said.out
    assert "culture server cert" in said.out
    shown = (await shell.run("server", "cert", "--name", "spark")).out.split("SHA-256")[1].split()[0]
    tls = f"{{certificate: {shell.home / 'tls/spark.pem'}, key: {shell.home / 'tls/spark.key'}}}"
    shell.write(f"name: spark\nlisten: [{{port: 7000}}, {{host: 0.0.0.0, port: 6697, tls: {tls}}}]\n")
    words = ("--trust", "restricted", "--channel", "#help", "--fingerprint", "ab" * 32)
    said = await done(shell, "link", "thor", "--new-secret", str(tmp_path / "two"), *words)
    assert f"mesh link spark HOST:6697 --secret-file {tmp_path / 'two'} --fingerprint {shown} --trust" in said.out
    assert "--channel '#help'" in said.out and (tmp_path / "two").read_text().strip() not in said.out + said.err
    again = await shell.run("mesh", "link", "thor", "--new-secret", str(tmp_path / "two"))
    assert again.code == Exit.FAILED and "--secret-file" in again.err
