"""Against a server that is not ours: ngIRCd, without history, ids, accounts and classes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.bridge.access import BridgeAccess
from tests.bridge.conftest import Bridge
from tests.bridge.program import Refused, over_http
from tests.support.client import registered
from tests.support.ngircd import ngircd


@pytest.fixture
async def irc_port(tmp_path: Path) -> AsyncIterator[int]:
    folder = tmp_path / "ngircd"
    folder.mkdir()
    async with ngircd(folder) as port:
        yield port


@pytest.mark.requirement("N17", part="ergo itself: ngIRCd stands for it")
async def test_the_tools_work_without_anything_of_ours(irc_port: int, bridge: Bridge) -> None:
    async with registered(irc_port, "ori") as ori, bridge(irc_port) as port, over_http(port) as program:
        await ori.join("#general")
        await program.call("create_channel", name="#plans")
        await ori.join("#plans")
        assert {"#general", "#plans"} <= set(await program.call("list_channels"))
        await program.call("send_message", channel="#plans", text="one\ntwo", sender="jules")
        for line in ("one", "two"):
            said = await ori.expect("PRIVMSG", "#plans", line)
            assert said.source.startswith("jules!")
        await ori.ask("PRIVMSG #plans :three")
        found = (await program.call("read_messages", channel="#plans"))["messages"]
        told = [(each["sender"], each["class"], each["text"]) for each in found]
        assert told == [("ori", "unknown", "three"), ("jules", "agent", "two"), ("jules", "agent", "one")]
        nicks = {each["nick"] for each in (await program.call("get_members", channel="#plans"))["members"]}
        assert nicks == {"ori", "jules", "mcp-bridge"}
        with pytest.raises(Refused, match="somebody else, who is on line"):
            await program.call("send_message", channel="#plans", text="x", sender="ori")
        lines = {line.verb: line.params[-1] for line in await ori.ask("WHOIS jules")}
        assert lines["311"] == "jules via mcp-bridge"


@pytest.mark.requirement("N11")
@pytest.mark.requirement("N17", part="ergo itself: ngIRCd stands for it")
async def test_long_texts_come_in_lines_and_what_was_said_before_is_not_there(irc_port: int, bridge: Bridge) -> None:
    async with registered(irc_port, "ori") as ori:
        await ori.join("#general")
        await ori.ask("PRIVMSG #general :before the bridge came")
        async with bridge(irc_port) as port, over_http(port) as program:
            text = " ".join(f"word{number:03}" for number in range(200))
            await program.call("send_message", channel="#general", text=text)
            found = (await program.call("read_messages", channel="#general"))["messages"]
            assert " ".join(each["text"] for each in reversed(found)) == text
            assert len(found) > 1


@pytest.mark.requirement("N17")
async def test_a_token_is_as_good_there(irc_port: int, bridge: Bridge, access: BridgeAccess) -> None:
    _, secret = access.issue(("jules",), ("#general",))
    async with registered(irc_port, "ori") as ori:
        await ori.join("#general")
        await ori.join("#other")
        async with bridge(irc_port) as port, over_http(port, secret) as program:
            await ori.expect("JOIN", "#general", where=lambda message: message.source.startswith("mcp-bridge!"))
            await ori.ask("PRIVMSG #general :before jules came")
            await program.call("send_message", channel="#general", text="good morning")
            await ori.expect("PRIVMSG", "#general", "good morning")
            found = (await program.call("read_messages", channel="#general"))["messages"]
            assert [each["text"] for each in found] == ["good morning", "before jules came"]
            with pytest.raises(Refused, match="does not speak for ori"):
                await program.call("send_message", channel="#general", text="x", sender="ori")
            with pytest.raises(Refused, match="jules is not in #other"):
                await program.call("read_messages", channel="#other")


async def test_a_server_with_a_password_is_told_it_for_everybody(tmp_path: Path, bridge: Bridge) -> None:
    async with ngircd(tmp_path, password="open-sesame") as irc_port:
        async with bridge(irc_port, IRC_PASSWORD="open-sesame") as port, over_http(port) as program:
            await program.call("send_message", channel="#general", text="hello", sender="jules")
            found = (await program.call("read_messages", channel="#general"))["messages"]
            assert [(each["sender"], each["text"]) for each in found] == [("jules", "hello")]
        async with bridge(irc_port, IRC_PASSWORD="sesame") as port, over_http(port) as program:
            with pytest.raises(Refused, match="the bridge cannot be on IRC"):
                await program.call("list_channels")
