"""``culture backup`` and ``culture restore`` on servers that run."""

import asyncio
import json
import tarfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.core.ids import begin_epoch
from culture.skills.history.entry import Entry, Sort
from culture.skills.history.sqlite import SQLiteStore
from tests.cli.shell import Result, Shell
from tests.support.client import Client, registered
from tests.support.waiting import PATIENCE

CAPS = "echo-message message-tags agentirc.dev/receipts"


@contextmanager
def store(path: Path) -> Iterator[SQLiteStore]:
    opened = SQLiteStore(path)
    opened.open()
    try:
        yield opened
    finally:
        opened.close()


def texts(path: Path) -> list[str]:
    """What the messages in a history say."""
    with store(path) as opened:
        return [each.entry.text for each in opened.everything() if each.entry.sort is Sort.MESSAGE]


def history(shell: Shell, folder: str = "spark") -> Path:
    return shell.home / "data" / folder / "history" / "history.db"


@asynccontextmanager
async def ori(port: int) -> AsyncIterator[Client]:
    async with registered(port, "spark-ori", CAPS) as client:
        await client.join("#general")
        yield client


async def say(client: Client, text: str) -> None:
    """Say it, and wait until it is kept."""
    client.send(f"PRIVMSG #general :{text}")
    await client.expect("TAGMSG")


async def backed_up(shell: Shell, *arguments: str) -> Path:
    result = await shell.run("backup", "out.tar.gz", "--name", "spark", *arguments)
    assert (result.code, result.err) == (0, ""), result.err
    return shell.folder / "out.tar.gz"


def manifest(file: Path) -> dict[str, object]:
    with tarfile.open(file) as tar:
        found = tar.extractfile("manifest.json")
        assert found is not None
        said = json.load(found)
        assert isinstance(said, dict)
        return said


def former(shell: Shell) -> Path:
    (folder,) = (shell.home / "data").glob("spark.before-*")
    return folder


async def test_a_restore_on_a_live_server_brings_back_what_was_and_nothing_else(shell: Shell) -> None:
    shell.write("name: spark\nlisten: [{port: 0}]\n")
    started = await shell.run("server", "start")
    before = shell.note()
    async with ori(started.port) as client:
        await say(client, "before")
        file = await backed_up(shell)
        await say(client, "after")
    refused = await shell.run("restore", "out.tar.gz", "--yes")
    assert refused.code == 1 and "is running" in refused.err and "--restart" in refused.err
    restored = await shell.run("restore", "out.tar.gz", "--yes", "--restart")
    assert restored.code == 0, restored.err
    assert file.stat().st_mode & 0o777 == 0o600
    after = shell.note()
    assert before is not None and after is not None
    assert after.pid != before.pid and after.options == before.options
    async with ori(shell.note().addresses[0][1]) as client:  # type: ignore[union-attr]
        client.send("HISTORY RECENT #general 10")
        assert (await client.expect("HISTORY")).params[-1] == "before"
        await client.expect("HISTORYEND")
    assert texts(former(shell) / "history" / "history.db") == ["before", "after"]
    assert f"The former data is in {former(shell)}." in restored.out


@pytest.mark.parametrize(("options", "may_log_in"), [((), False), (("--with-revoked",), True)])
async def test_who_was_revoked_since_the_backup_stays_so(
    shell: Shell, options: tuple[str, ...], may_log_in: bool
) -> None:
    shell.write("name: spark\n")
    accounts = AccountStore(shell.home / "accounts.json")
    for name in ("ori", "kim"):
        accounts.add(new_account(name, UserClass.HUMAN, certificates=(name[0].encode().hex() * 32,)))
    (shell.home / "data" / "spark").mkdir(parents=True, mode=0o700)
    begin_epoch(shell.home / "data" / "spark" / "ids.json")
    await backed_up(shell)
    accounts.revoke("ori")
    restored = await shell.run("restore", "out.tar.gz", "--yes", *options)
    assert (restored.code, restored.err) == (0, "")
    told = "Accounts revoked since the backup stay revoked (--with-revoked reactivates them): ori."
    assert (told in restored.out) is not may_log_in
    after = AccountStore(shell.home / "accounts.json")
    assert (after.active("ori") is not None) is may_log_in and after.active("kim") is not None


async def test_a_linked_server_takes_the_first_message_after_a_restore_for_new(shell: Shell) -> None:
    """Whoever heard everything, also what the backup does not have, must not take a new message for a known one.

    The linked server is a store that knows messages by their ids, as federation does.
    """
    with store(shell.folder / "linked.db") as linked:
        started = await shell.run("server", "start", "--name", "spark", "--port", "0")
        async with ori(started.port) as client:
            await say(client, "first")
            await backed_up(shell)
            await say(client, "second, which the backup does not have")
        restored = await shell.run("restore", "out.tar.gz", "--name", "spark", "--yes", "--restart")
        assert restored.code == 0, restored.err
        linked.write(entries(former(shell) / "history" / "history.db"))
        known = {each.entry.msgid for each in linked.everything()}
        note = shell.note()
        assert note is not None
        async with ori(note.addresses[0][1]) as client:
            await say(client, "third")
        fresh = [each for each in entries(history(shell)) if each.text == "third"]
        assert len(fresh) == 1 and fresh[0].msgid not in known
        linked.write(entries(history(shell)))
        heard = [each.entry.text for each in linked.everything() if each.entry.sort is Sort.MESSAGE]
    assert heard == ["first", "second, which the backup does not have", "third"]


def entries(path: Path) -> list[Entry]:
    with store(path) as opened:
        return [each.entry for each in opened.everything()]


async def test_a_backup_under_traffic_is_whole(shell: Shell) -> None:
    shell.write("name: spark\nlisten: [{port: 0}]\n")
    started = await shell.run("server", "start")
    said = 0
    async with ori(started.port) as client:
        ended = asyncio.Event()

        async def talk() -> None:
            nonlocal said
            while not ended.is_set():
                await say(client, f"number {said} https://example.org/{said}")
                said += 1

        talking = asyncio.create_task(talk())
        try:
            await backed_up(shell)
            during = said
        finally:
            ended.set()
        async with asyncio.timeout(PATIENCE):
            await talking
    assert during > 0
    fresh = Shell(shell.folder / "elsewhere")
    fresh.folder.mkdir()
    restored = await fresh.run("restore", str(shell.folder / "out.tar.gz"), "--yes")
    assert (restored.code, restored.err) == (0, "")
    verified = await fresh.run("history", "verify")
    assert verified.code == 0 and "all intact" in verified.out, verified.out
    kept = texts(history(fresh))
    assert [text.split()[1] for text in kept] == [str(number) for number in range(len(kept))]
    assert len(kept) <= said


async def test_the_manifest_says_what_is_in_it(shell: Shell) -> None:
    shell.write("name: spark\nlisten: [{port: 0}]\n")
    tls = shell.home / "tls"
    tls.mkdir()
    (tls / "spark.key").write_text("secret")
    started = await shell.run("server", "start")
    async with ori(started.port) as client:
        await say(client, "https://example.org")
    await backed_up(shell)
    said = manifest(shell.folder / "out.tar.gz")
    files = said["files"]
    assert isinstance(files, list)
    names = [each["name"] for each in files]
    assert (said["format"], said["server"], said["history"]) == (1, "spark", "sqlite")
    assert names[0] == "culture.yaml" and "data/history/history.db" in names and "data/urlindex/links.db" in names
    assert "data/ids.json" in names and "data/lock" not in names and "tls/spark.key" not in names
    assert all(each["schema"] >= 1 for each in files if each["name"].endswith(".db"))
    again = await shell.run("backup", "out.tar.gz")
    assert again.code == 1 and "exists already" in again.err
    with_keys = await shell.run("backup", "--with-tls")
    assert with_keys.code == 0
    (made,) = shell.folder.glob("culture-spark-*Z.tar.gz")
    with tarfile.open(made) as tar:
        assert "tls/spark.key" in tar.getnames()


async def test_on_a_new_machine_everything_is_put_in_place(shell: Shell) -> None:
    shell.write(
        "name: spark\nlisten: [{port: 0}]\ndata_dir: kept\nmotd: back again\n".replace(
            "kept", str(shell.folder / "kept")
        )
    )
    added = await shell.run("account", "add", "ori", "--no-password")
    assert added.code == 0, added.err
    (shell.home / "tls").mkdir()
    (shell.home / "tls" / "spark.key").write_text("secret")
    started = await shell.run("server", "start")
    assert started.code == 0, started.err
    await shell.run("server", "stop")
    await backed_up(shell, "--with-tls")
    (shell.folder / "kept").rename(shell.folder / "lost")
    shell.home.rename(shell.folder / "lost-home")
    restored = await shell.run("restore", "out.tar.gz", "--yes")
    assert (restored.code, restored.err) == (0, ""), restored.err
    assert "The former" not in restored.out
    assert (shell.folder / "kept" / "history" / "history.db").exists()
    assert "back again" in (shell.home / "culture.yaml").read_text()
    assert "ori" in (await shell.run("account", "list")).out
    key = shell.home / "tls" / "spark.key"
    assert (key.read_text(), key.stat().st_mode & 0o777) == ("secret", 0o600)


async def test_another_server_s_backup_is_refused(shell: Shell) -> None:
    await shell.run("server", "start", "--name", "spark", "--port", "0")
    await shell.run("server", "stop", "--name", "spark")
    await backed_up(shell)
    shell.write("name: thor\n")
    refused = await shell.run("restore", "out.tar.gz", "--yes")
    assert refused.code == 1 and "a backup of spark, not of thor" in refused.err
    unasked = await shell.run("restore", "out.tar.gz", "--name", "spark")
    assert unasked.code == 2 and "--yes" in unasked.err
    named = await shell.run("restore", "out.tar.gz", "--name", "spark", "--yes")
    assert named.code == 0, named.err
    assert not (shell.home / "data" / "thor").exists()


async def test_a_damaged_backup_leaves_the_running_server_alone(shell: Shell) -> None:
    await shell.run("server", "start", "--name", "spark", "--port", "0")
    before = shell.note()
    file = await backed_up(shell)
    file.write_bytes(file.read_bytes()[:-100])
    refused = await shell.run("restore", "out.tar.gz", "--name", "spark", "--yes", "--restart")
    assert refused.code == 1 and "is not restored" in refused.err
    assert shell.note() == before
    assert [each.name for each in (shell.home / "data").iterdir()] == ["spark"]


async def test_a_history_in_postgresql_is_told_to_be_elsewhere(shell: Shell) -> None:
    (shell.home / "data" / "spark").mkdir(parents=True)
    shell.write("name: spark\nhistory: {store: 'postgresql://culture:secret@db/culture'}\n")
    made = await shell.run("backup", "out.tar.gz")
    assert made.code == 0 and "pg_dump" in made.err and "secret" not in made.out + made.err
    assert manifest(shell.folder / "out.tar.gz")["history"] == "postgresql"


async def test_where_there_is_nothing_it_says_so(shell: Shell) -> None:
    nothing: Result = await shell.run("backup", "--name", "spark")
    assert nothing.code == 1 and "no data" in nothing.err
    missing = await shell.run("restore", "nowhere.tar.gz")
    assert missing.code == 1 and "cannot read nowhere.tar.gz" in missing.err
