"""Registered channels (+P): they outlive their members, a restart and kill -9."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.config.model import Operator
from culture.protocol.message import Message
from culture.protocol.vocabulary import ChannelKey
from culture.runtime import Runtime
from culture.server.channels import registered_channels as module
from culture.server.channels.registered_channels import MIGRATIONS, dump, dump_channel, parse
from culture.server.core.state import Channel, ListEntry, Topic
from culture.server.errors import StartError
from culture.server.ircd import IRCd
from culture.server.shapes import UnreadableJson
from tests.server.logins import ByPassword, log_in
from tests.support.client import Client, connected
from tests.support.clock import Clock, ClockedRuntime
from tests.support.servers import config_for, serving
from tests.support.waiting import PATIENCE

CAPS = "batch draft/metadata-3"


class House:
    """A server with logins, and the clients of one test."""

    def __init__(self, ircd: IRCd, stack: AsyncExitStack) -> None:
        self.ircd = ircd
        self._stack = stack

    async def enter(self, account: str, *channels: str, logged_in: bool = True) -> Client:
        client = await self._stack.enter_async_context(connected(self.ircd.port))
        if logged_in:
            await log_in(client, account, CAPS)
        else:
            await client.register(f"spark-{account}", CAPS)
        for channel in channels:
            await client.join(channel)
        return client


@asynccontextmanager
async def house(folder: Path, **settings: Any) -> AsyncIterator[House]:
    operators = (Operator(name="root", password="secret"),)
    async with serving(folder, ByPassword(), operators=operators, **settings) as ircd, AsyncExitStack() as stack:
        yield House(ircd, stack)


def rows(messages: list[Message], *verbs: str) -> list[tuple[str, ...]]:
    return [each.params[1:] for each in messages if each.verb in verbs]


def codes(messages: list[Message]) -> list[str]:
    return [each.verb for each in messages]


async def is_operator(client: Client, channel: str) -> bool:
    [names] = rows(await client.ask(f"NAMES {channel}"), "353")
    return f"@{client.nick}" in names[-1].split()


async def gone(client: Client) -> None:
    client.send("QUIT")
    await client.ended()


def on_disk(folder: Path) -> dict[str, Any]:
    kept = json.loads((folder / "data" / "channels.json").read_text())
    return {each["name"]: each for each in kept["channels"]}


async def test_who_may_register_a_channel(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        guest = await home.enter("guest", "#guest", logged_in=False)
        [refused] = await guest.ask("MODE #guest +P")
        assert (refused.verb, refused.params[1]) == ("477", "#guest") and "Log in" in refused.params[-1]
        ori = await home.enter("ori", "#a")
        eve = await home.enter("eve", "#a")
        assert codes(await eve.ask("MODE #a +P")) == ["482"]
        assert not (tmp_path / "data" / "channels.json").exists()
        [said] = [each for each in await ori.ask("MODE #a +P") if each.verb == "MODE"]
        assert said.params == ("#a", "+P")
        assert rows(await ori.ask("MODE #a"), "324") == [("#a", "+Pnt")]
        assert on_disk(tmp_path)["#a"]["founder"] == "ori"
        assert await ori.ask("MODE #a +P") == []


async def test_who_may_end_it(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        ori = await home.enter("ori", "#a", "#b")
        eve = await home.enter("eve", "#a")
        for line in ("MODE #a +Po spark-eve", "MODE #b +P", "PART #b"):
            await ori.ask(line)
        await eve.sync()
        [refused] = await eve.ask("MODE #a -P")
        assert refused.verb == "482" and "founder" in refused.params[-1]
        assert codes(await eve.ask("MODE #b -P")) == ["442"]
        await eve.ask("OPER root secret")
        [said] = await eve.ask("MODE #b -P")
        assert (said.verb, said.params) == ("MODE", ("#b", "-P"))
        assert codes(await eve.ask("MODE #b")) == ["403"], "without members it ends"
        await eve.ask("MODE #a -o spark-ori")
        await ori.sync()
        [said] = await ori.ask("MODE #a -P")
        assert said.params == ("#a", "-P"), "the founder needs no rank for it"
        assert on_disk(tmp_path) == {}


async def test_it_stays_without_members_and_has_its_founder_for_operator(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        ori = await home.enter("ori", "#a")
        for line in ("MODE #a +P", "TOPIC #a :plans", "PART #a"):
            await ori.ask(line)
        eve = await home.enter("eve")
        assert rows(await eve.join("#a"), "332") == [("#a", "plans")]
        assert not await is_operator(eve, "#a"), "the first one in is nobody special here"
        await ori.join("#a")
        assert await is_operator(ori, "#a")
        for mode in ("+i", "+k key", "+l 1", "+b *!*@*"):
            await ori.ask(f"MODE #a {mode}")
        await ori.ask("PART #a")
        assert "JOIN" in codes(await ori.join("#a")), "nothing keeps the founder out"
        assert not await is_operator(eve, "#a")


async def test_list_does_not_show_it_while_it_is_empty(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        ori = await home.enter("ori", "#a")
        await ori.ask("MODE #a +P")
        assert [row[0] for row in rows(await ori.ask("LIST"), "322")] == ["#general", "#a"]
        await ori.ask("PART #a")
        assert [row[0] for row in rows(await ori.ask("LIST"), "322")] == ["#general"]
        assert rows(await ori.ask("LIST #a"), "322") == []


async def test_how_many_an_account_may_register_is_a_setting(tmp_path: Path) -> None:
    async with house(tmp_path, limits={"registered_channels": 2}) as home:
        ori = await home.enter("ori", "#a", "#b", "#c")
        for name in ("#a", "#b"):
            assert codes(await ori.ask(f"MODE {name} +P")) == ["MODE"]
        [refused] = await ori.ask("MODE #c +P")
        assert refused.verb == "405" and "at most 2" in refused.params[-1]
        await ori.ask("MODE #a -P")
        assert codes(await ori.ask("MODE #c +P")) == ["MODE"]


async def test_all_of_it_is_there_after_a_restart(tmp_path: Path) -> None:
    clock = Clock()

    def server() -> IRCd:
        return IRCd(config_for(tmp_path), runtime=ClockedRuntime(clock), authenticator=ByPassword())

    asked = ("MODE #Plans", "TOPIC #Plans", "MODE #Plans b", "MODE #Plans e", "MODE #Plans I", "METADATA #Plans LIST")
    async with server().running() as ircd, AsyncExitStack() as stack:
        ori = await House(ircd, stack).enter("ori", "#Plans")
        clock.now += 100
        for line in (
            "MODE #Plans +P",
            "TOPIC #Plans :größer, with : and \x02bold\x02",
            "MODE #Plans +imsk-t key",
            "MODE #Plans +l 7",
            "MODE #Plans +bbeI a!*@* m:b!*@* *!*@c *!d@*",
            f"METADATA #Plans SET {ChannelKey.PURPOSE} :to plan",
            f"METADATA #Plans SET {ChannelKey.TAGS} a,b",
        ):
            await ori.ask(line)
        before = [[str(each.params) for each in await ori.ask(line) if each.verb != "BATCH"] for line in asked]
    clock.now += 100
    async with server().running() as ircd, AsyncExitStack() as stack:
        again = House(ircd, stack)
        eve = await again.enter("eve")
        assert codes(await eve.join("#plans")) == ["475"]
        ori = await again.enter("ori")
        await ori.join("#plans")
        assert await is_operator(ori, "#Plans")
        after = [[str(each.params) for each in await ori.ask(line) if each.verb != "BATCH"] for line in asked]
        assert after == before
        assert len(after[-1]) == 2


async def test_what_is_no_longer_registered_does_not_come_back(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        ori = await home.enter("ori", "#a", "#b", "#c", "#general")
        for line in ("MODE #a +P", "MODE #b +P", "MODE #b -P", "MODE #c +P", "RENAME #c #d", "MODE #general +P"):
            await ori.ask(line)
    async with house(tmp_path) as home:
        assert set(home.ircd.parts.network.channels) == {"#a", "#d", "#general"}
        general = home.ircd.parts.network.channels["#general"]
        assert general.standing and general.founder == "ori"
        ori = await home.enter("ori")
        assert rows(await ori.ask("LIST"), "322") == [("#general", "0", "")]
        assert codes(await ori.ask("MODE #a -P")) == ["MODE"]
        assert set(home.ircd.parts.network.channels) == {"#d", "#general"}


async def test_it_is_written_once_a_turn_and_only_when_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []

    def replace(path: Path, data: bytes, *, runtime: Runtime) -> None:
        if path.name == "channels.json":
            written.append(data)

    monkeypatch.setattr(module, "replace_file", replace)
    async with house(tmp_path) as home:
        ori = await home.enter("ori", "#a", "#b")
        eve = await home.enter("eve", "#a")
        await ori.ask("MODE #a +P")
        assert len(written) == 1
        for line in ("TOPIC #b :other", "MODE #a +v spark-eve", "MODE #a +n", "PRIVMSG #a :hello", "PART #b"):
            await ori.ask(line)
        await gone(eve)
        await ori.sync()
        assert len(written) == 1
        burst = [f"MODE #a +b mask{number}!*@*" for number in range(8)]
        ori.send("\r\n".join([*burst, "TOPIC #a :one", "TOPIC #a :two"]))
        await ori.sync()
        assert len(written) == 2
        assert written[-1].count(b'"mask') == 8


async def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        ori = await home.enter("ori", "#a")
        await ori.ask("MODE #a +Pk secret")
        assert (tmp_path / "data" / "channels.json").stat().st_mode & 0o777 == 0o600


async def test_a_full_disk_costs_nobody_a_message_and_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_TRY_AGAIN", 0.001)
    blocked = tmp_path / "data" / "channels.json.new"
    async with house(tmp_path) as home:
        ori = await home.enter("ori", "#a")
        blocked.mkdir()
        assert codes(await ori.ask("MODE #a +P")) == ["MODE"]
        assert "cannot write" in caplog.text
        assert await ori.ask("TOPIC #a :goes on") != []
        blocked.rmdir()
        async with asyncio.timeout(PATIENCE):
            while not (tmp_path / "data" / "channels.json").exists():
                await ori.sync()
        assert on_disk(tmp_path)["#a"]["topic"]["text"] == "goes on"
        blocked.mkdir()
        await ori.ask("TOPIC #a :the last word")
        await home.ircd.parts.tasks.stop()
        blocked.rmdir()
    assert on_disk(tmp_path)["#a"]["topic"]["text"] == "the last word", "a stop writes what is left"


CHILD = """
import asyncio, sys
from pathlib import Path
from tests.server.logins import ByPassword
from tests.support.servers import serving

async def main():
    async with serving(Path(sys.argv[1]), ByPassword()) as ircd:
        print(ircd.port, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@asynccontextmanager
async def process(folder: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """A server in a process of its own."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CHILD, str(folder)),
        cwd=Path(__file__).parents[2],
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        async with asyncio.timeout(PATIENCE):
            yield child, int(await child.stdout.readline())
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def test_what_was_answered_survives_kill_9(tmp_path: Path) -> None:
    """The process is killed the moment the answer is read, again and again: nothing answered is ever missing."""
    changes = (
        ("MODE #a +P", "MODE"),
        ("TOPIC #a :one", "TOPIC"),
        ("MODE #a +k key", "MODE"),
        ("MODE #a +b x!*@*", "MODE"),
        (f"METADATA #a SET {ChannelKey.PURPOSE} :to stay", "761"),
        ("TOPIC #a :two", "TOPIC"),
    )
    for line, answer in changes:
        async with process(tmp_path) as (child, port), connected(port) as ori:
            await log_in(ori, "ori")
            await ori.join("#a")
            ori.send(line)
            await ori.expect(answer)
            child.send_signal(signal.SIGKILL)
            assert await child.wait() == -signal.SIGKILL
    kept = on_disk(tmp_path)["#a"]
    assert (kept["founder"], kept["topic"]["text"], kept["key"]) == ("ori", "two", "key")
    assert set(kept["lists"]["b"]) == {"x!*@*"}
    assert kept["metadata"] == {ChannelKey.PURPOSE: "to stay"}
    async with process(tmp_path) as (_, port), connected(port) as ori:
        await log_in(ori, "ori")
        assert rows(await ori.join("#a"), "332") == [("#a", "two")]


def a_channel(**settings: Any) -> dict[str, Any]:
    return {"name": "#a", "created": 1.0, "founder": "ori", **settings}


async def test_an_older_schema_is_brought_forward(tmp_path: Path) -> None:
    """Schema 0 had a mapping of names, no metadata and no schema."""
    old = {
        "#Old": {
            "created": 5.5,
            "founder": "ori",
            "topic": {"text": "still here", "by": "spark-ori!~o@h", "at": 6},
            "modes": "nt",
            "lists": {"b": {"x!*@*": {"by": "spark-ori!~o@h", "at": 7}}},
        }
    }
    file = tmp_path / "data" / "channels.json"
    file.parent.mkdir()
    file.write_text(json.dumps(old))
    async with house(tmp_path) as home:
        ori = await home.enter("ori")
        joined = await ori.join("#old")
        assert rows(joined, "332", "333") == [("#Old", "still here"), ("#Old", "spark-ori!~o@h", "6")]
        assert rows(await ori.ask("MODE #old b"), "367") == [("#Old", "x!*@*", "spark-ori!~o@h", "7")]
        await ori.ask("TOPIC #old :new")
    kept = json.loads(file.read_text())
    assert kept["schema"] == len(MIGRATIONS)
    assert kept["channels"][0]["topic"]["text"] == "new" and kept["channels"][0]["metadata"] == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Expecting value"),
        ('{"schema": 1, "chan', "Unterminated"),
        ("[]", "expected a mapping"),
        ('{"schema": 99, "channels": []}', "written by a newer culture"),
        ('{"schema": "x", "channels": []}', "is not a number"),
        ('{"schema": 1}', "channels is missing"),
        ('{"schema": 1, "channels": {}}', "expected a list"),
        ("\xff\xfe", ""),
        ("[" * 100_000, ""),
        *(
            (json.dumps({"schema": 1, "channels": channels}), why)
            for channels, why in (
                ([a_channel(), a_channel(name="#A")], "there twice"),
                ([a_channel(name="a b")], "not a name for a channel"),
                ([a_channel(founder=None)], "expected text"),
                ([a_channel(created="now")], "expected a number"),
                ([a_channel(created=True)], "expected a number"),
                ([a_channel(modes="nZ")], "does not know: Z"),
                ([a_channel(lists={"z": {}})], "does not know: z"),
                ([a_channel(colour="red")], "nothing is known about colour"),
                ([a_channel(key="a\r\nQUIT")], "line break"),
                ([a_channel(metadata={"k": "a\nb"})], "line break"),
                ([a_channel(topic={"text": "x"})], "by is missing"),
                ([{"name": "#a"}], "is missing"),
            )
        ),
    ],
)
async def test_a_file_that_cannot_be_read_stops_the_start_and_stays(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "data" / "channels.json"
    file.parent.mkdir()
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(StartError, match="move it away") as told:
        async with serving(tmp_path):
            pass
    assert str(file) in str(told.value) and why in str(told.value)
    assert file.read_bytes() == text.encode("latin-1")
    file.unlink()
    async with serving(tmp_path):
        pass


WORDS = st.text(st.characters(blacklist_characters="\r\n\0", blacklist_categories=["Cs"]), max_size=20)
TIMES = st.floats(0, 1e11)


@given(
    topic=st.none() | st.builds(Topic, WORDS, WORDS, TIMES),
    flags=st.sets(st.sampled_from("CPimnst")),
    key=st.none() | WORDS,
    limit=st.none() | st.integers(1, 999),
    lists=st.dictionaries(
        st.sampled_from("beI"), st.dictionaries(WORDS, st.builds(ListEntry, WORDS, TIMES), min_size=1, max_size=3)
    ),
    metadata=st.none() | st.dictionaries(WORDS, WORDS, min_size=1, max_size=3),
    founder=WORDS,
    created=TIMES,
)
def test_what_is_written_is_what_is_read(**settings: Any) -> None:
    channel = Channel("#a", **settings)
    channel.flags.add("P")
    channel.guard()
    [read] = parse(dump([dump_channel(channel)]))
    fields = ("name", "created", "topic", "flags", "key", "limit", "lists", "is_guarded", "founder", "metadata")
    assert {name: getattr(read, name) for name in fields} == {name: getattr(channel, name) for name in fields}
    assert parse(dump([])) == []


@given(st.binary(max_size=60))
def test_odd_bytes_are_told_as_such(data: bytes) -> None:
    try:
        assert parse(data) is not None
    except UnreadableJson:
        pass
