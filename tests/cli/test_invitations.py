"""``culture mesh invite`` and ``join``: real processes, one line from one machine to the other."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO
from pathlib import Path

import pytest
from typer.testing import CliRunner

from culture.cli.mesh.command import group
from culture.cli.mesh.invite import InviteCode, NoCode
from culture.cli.mesh.links import ask_trust
from culture.protocol.vocabulary import Exit
from tests.cli.shell import Process, Shell
from tests.cli.test_mesh import WITHOUT_SKILLS, done
from tests.support.client import registered
from tests.support.ports import reserved

PLAIN = InviteCode("machine", "spark", "127.0.0.1:6697", "", "", "k" * 32)


def shell_in(folder: Path) -> Shell:
    folder.mkdir()
    return Shell(folder)


@asynccontextmanager
async def spark_with_tls(folder: Path) -> AsyncIterator[tuple[Shell, Process, int]]:
    """spark, with TLS on one port and without on the other."""
    shell = shell_in(folder)
    with reserved() as port, reserved() as plain:
        await shell.run("server", "cert", "--name", "spark")
        tls = f"{{certificate: {shell.home / 'tls/spark.pem'}, key: {shell.home / 'tls/spark.key'}}}"
        shell.write(f"name: spark\nlisten: [{{port: {plain}}}, {{port: {port}, tls: {tls}}}]\n{WITHOUT_SKILLS}")
        server = await shell.spawn("server", "start", "--foreground")
        await server.until("listens on")
        try:
            yield shell, server, plain
        finally:
            await shell.close()


FULL = ("--trust", "full")


async def code_of(shell: Shell, *words: str) -> str:
    said = await done(shell, "invite", *words)
    line = said.out.strip()
    assert line.startswith("culture mesh join inv1_") and "\n" not in line and "inv1_" not in said.err
    return line.rpartition(" ")[2]


@pytest.fixture
async def thor(tmp_path: Path) -> AsyncIterator[Shell]:
    shell = shell_in(tmp_path / "thor")
    shell.write(f"name: thor\n{WITHOUT_SKILLS}")
    yield shell
    await shell.close()


async def test_a_second_machine_is_brought_in_with_one_line(tmp_path: Path, thor: Shell) -> None:
    async with spark_with_tls(tmp_path / "spark") as (spark, server, plain):
        less = (await done(spark, "invite", "--trust", "restricted", "--channel", "#shop")).err
        assert "Trust restricted: its users can talk in #shop only" in less
        await done(spark, "uninvite", "--all")
        code = await code_of(spark, *FULL)
        assert InviteCode.parse(code).fingerprint
        [row] = (await done(spark, "invites")).out.splitlines()
        assert "machine  any" in row and row.endswith("trust full")
        _, port = await thor.serve()
        said = await done(thor, "join", code, *FULL)
        assert "Linked." in said.out and "unlink spark" in said.out
        assert "Trust full: its people count as people here" in said.err and "mesh link spark --trust" in said.err
        async with registered(plain, "spark-ori") as ori, registered(port, "thor-bob") as bob:
            await ori.join("#general")
            await bob.join("#general")
            await ori.expect("JOIN", "#general")
            assert "No invitation is open" in (await done(spark, "invites")).out
            again = await thor.run("mesh", "join", code, *FULL)
            assert again.code == Exit.FAILED and "linked already" in again.err
            await done(spark, "unlink", "thor")
            assert (await ori.expect("QUIT")).source.startswith("thor-bob!")
        key = InviteCode.parse(code).key
        secrets = [json.loads(file.read_text())["links"] for file in thor.home.rglob("links.json")]
        for shell in (spark, thor):
            kept = [each.read_text(errors="replace") for each in shell.home.rglob("*") if each.is_file()]
            assert not any(key in text or code in text for text in kept)
        assert secrets[0][0]["secret"] not in server.said and key not in server.said


async def test_a_person_is_brought_in_with_one_line(tmp_path: Path) -> None:
    laptop = shell_in(tmp_path / "laptop")
    async with spark_with_tls(tmp_path / "spark") as (spark, _, _):
        code = await code_of(spark, "--person", "ori", "--expires", "10m")
        nobody = await laptop.run("mesh", "join", code)
        assert nobody.code == Exit.USAGE and "--password-stdin" in nobody.err
        joined = await laptop.run_with("correct horse\n", "mesh", "join", code, "--password-stdin")
        assert joined.code == 0, joined.err
        assert "You are spark-ori on spark" in joined.out and "tls_fingerprint" in joined.out
        [token] = laptop.home.glob("secrets/spark-ori")
        assert token.stat().st_mode & 0o777 == 0o600 and token.read_text().strip() not in joined.out
        who = await laptop.run("who", "spark-ori", "--nick", "spark-ori")
        assert who.code == 0 and "spark-ori" in who.out, who.err
        twice = await laptop.run_with("correct horse\n", "mesh", "join", code, "--password-stdin")
        assert twice.code == Exit.DENIED and "used already" in twice.err
        taken = await spark.run("mesh", "invite", "--person", "ori")
        assert taken.code == Exit.FAILED and "has an account already" in taken.err


async def test_an_invitation_is_taken_back(tmp_path: Path, thor: Shell) -> None:
    async with spark_with_tls(tmp_path / "spark") as (spark, _, _):
        code = await code_of(spark, "thor", *FULL)
        [row] = json.loads((await done(spark, "invites", "--json")).out)
        assert (row["kind"], row["name"], row["trust"]) == ("machine", "thor", "full")
        assert "1 invitation is revoked" in (await done(spark, "uninvite", row["id"])).out
        refused = await thor.run("mesh", "join", code, *FULL)
        assert refused.code == Exit.DENIED and "No such invitation" in refused.err
        unknown = await spark.run("mesh", "uninvite", "12345678")
        assert unknown.code == Exit.FAILED and "culture mesh invites" in unknown.err


async def test_who_has_no_tls_is_told_what_to_type(shell: Shell) -> None:
    shell.write("name: spark\nlisten: [{port: 7000}]\n")
    refused = await shell.run("mesh", "invite", "--address", "spark.local:6697")
    assert refused.code == Exit.FAILED and "culture server cert --name spark.local" in refused.err
    said = await done(shell, "invite", *FULL)
    assert "only this machine can reach" in said.err and "culture server start" in said.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("invite", "spark"), "this server itself"),
        (("invite", "--expires", "soon"), "not an age"),
        (("invite", "--person", "ori", "--trust", "full"), "cannot be combined with"),
        (("invite",), "--trust full for a machine of yours"),
        (
            ("join", str(InviteCode("machine", "thor", "127.0.0.1:1", "", "", "k" * 32))),
            "trust level for the users of thor",
        ),
        (("join", str(PLAIN)[:-3]), "not a complete invitation code"),
        (("join", str(InviteCode("machine", "spark", "127.0.0.1:1", "", "", "k" * 32))), "names differ in a mesh"),
        (("join", str(InviteCode("machine", "thor", "10.0.0.2:1", "", "", "k" * 32))), "fingerprint"),
        (("join", str(InviteCode("machine", "thor", "127.0.0.1:1", "", "odin", "k" * 32))), "is for odin"),
        (("join", str(InviteCode("machine", "thor", "127.0.0.1:1", "", "", "k" * 32)), *FULL), "Does it run there?"),
    ],
    ids=["itself", "expires", "person", "trust", "trust there", "cut", "own", "fingerprint", "other", "away"],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], why: str
) -> None:
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path))
    (tmp_path / "culture.yaml").write_text("name: spark\nlisten: [{port: 7000}]\n")
    result = CliRunner().invoke(group, words)
    assert result.exit_code != 0 and why in result.stderr
    assert "k" * 32 not in result.stderr and not list(tmp_path.rglob("links.json"))


def test_a_code_is_read_back_and_none_that_is_cut_or_changed() -> None:
    text = str(PLAIN)
    assert InviteCode.parse(text) == PLAIN and "k" * 32 not in repr(PLAIN)
    for bad in (text[:-1], text[1:], text.replace("_", "-"), text + "A", text[:20] + "A" + text[21:], ""):
        with pytest.raises(NoCode):
            InviteCode.parse(bad)


@pytest.mark.parametrize("rest", ["wrongcode", "wrong code", "wröng", "", "A", "AAAA", str(PLAIN)[5:-1]])
def test_what_is_no_code_is_told_in_words_for_people(rest: str) -> None:
    """What the decoder says of it (base64, characters, ASCII) helps nobody who copied a line."""
    with pytest.raises(NoCode, match=r"^letters are missing, or are not those that it was made with$"):
        InviteCode.parse(f"inv1_{rest}")


def test_a_code_comes_from_standard_input_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path))
    result = CliRunner().invoke(group, ("join", "-"), input="nonsense\n")
    assert result.exit_code == Exit.USAGE and "not a complete invitation code" in result.stderr


@pytest.mark.parametrize(
    ("typed", "chosen"), [("\n", "no_authority"), ("all\nFull\n", "full"), ("no_authority\n", "no_authority")]
)
def test_person_at_a_terminal_is_asked_for_the_trust(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, chosen: str
) -> None:
    terminal = StringIO(typed)
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    assert ask_trust(None, None, "thor") == chosen
    shown = capsys.readouterr()
    assert "its people count as people here" in shown.err and shown.out == "", "the code alone goes to standard output"
