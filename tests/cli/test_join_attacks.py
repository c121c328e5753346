"""``culture mesh join`` where whoever invites means harm: what their code and their server say is only text."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from culture.cli.mesh.invite import InviteCode, NoCode
from culture.protocol.vocabulary import Exit
from tests.cli.shell import Shell

KEY, TOKEN = "k" * 32, "t" * 43


def files(folder: Path) -> set[Path]:
    return {each for each in folder.rglob("*") if each.is_file()}


@asynccontextmanager
async def inviting(answer: str) -> AsyncIterator[str]:
    """A server that answers every key with this; where it is."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            said = b":evil CAP * LS :sasl\r\n" if line.startswith(b"CAP") else f":evil {answer}\r\n".encode()
            writer.write(said)
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    "answer",
    [
        f"REDEEM SUCCESS ori ../../stolen {TOKEN}",
        f"REDEEM SUCCESS ori spark-claude {TOKEN}",
        "REDEEM SUCCESS ori evil-ori :ssh-ed25519 AAAA evil",
    ],
    ids=["a-path", "the-nick-of-another", "no-token"],
)
async def test_a_server_that_invites_writes_no_file_of_its_choice(tmp_path: Path, answer: str) -> None:
    shell = Shell(tmp_path)
    before = files(tmp_path)
    async with inviting(answer) as place:
        code = InviteCode("person", "evil", place, "", "ori", KEY)
        said = await shell.run_with("correct horse\n", "mesh", "join", str(code), "--password-stdin")
    assert said.code == Exit.FAILED and "an answer that makes no sense" in said.err
    assert files(tmp_path) == before


@pytest.mark.parametrize("name", ["ori\x1b]0;owned\x07", "../ori", "ori /exec", "", "*"], ids=str.__repr__)
def test_a_code_names_somebody_who_can_have_an_account_and_nothing_else(name: str) -> None:
    with pytest.raises(NoCode):
        InviteCode.parse(str(InviteCode("person", "evil", "127.0.0.1:6667", "", name, KEY)))
    if name:
        with pytest.raises(NoCode):
            InviteCode.parse(str(InviteCode("machine", "evil", "127.0.0.1:6667", "", name, KEY)))
