"""What we say of ourselves and hear of others: metadata, away, invitations, receipts, history."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import cast

import pytest

from culture.protocol.message import Message as Line
from culture.protocol.vocabulary import Receipt, UserKey
from culture.server.ircd import IRCd
from culture.transport import NotSent
from culture.transport.profile import ClientProfile
from culture.transport.session import IrcSession
from tests.support.client import registered
from tests.support.proxy import proxied
from tests.transport.conftest import Come

STATE = UserKey.STATE.value


async def test_what_we_publish_outlives_a_reconnect(ircd: IRCd, come: Come) -> None:
    async with proxied(ircd.port) as way:
        ada = await come(way.port, "spark-ada", ["#general"])
        bob = await come(ircd.port, "spark-bob", ["#general"])
        assert await ada.irc.set_metadata(STATE, "working")
        await ada.irc.set_metadata(UserKey.TASK.value, "tea")
        way.cut()
        await ada.until(lambda: not ada.irc.connected)
        assert not await ada.irc.set_metadata(UserKey.TASK.value, None)
        await ada.irc.set_away("back soon")
        way.heal()
        await ada.connected(times=2)
        assert await bob.irc.get_metadata("spark-ada") == {STATE: "working"}
        seen = bob.irc.view.user("spark-ada")
        assert seen is not None and seen.metadata == {STATE: "working"} and seen.away


class Connection:
    """A new one, on which others speak as soon as it takes the first value."""

    enabled = frozenset({"draft/metadata-2"})
    view = SimpleNamespace(nick="spark-ada", features=SimpleNamespace(tokens={}))

    def __init__(self) -> None:
        self.watchers: list[object] = []
        self.lines: list[Line] = []
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    async def ask(self, line: Line) -> list[Line]:
        self.lines.append(line)
        if line.params[1] == "SET" and (meanwhile := self.meanwhile) is not None:
            self.meanwhile = None
            await meanwhile()
        return []

    command = ask


async def test_what_we_publish_while_a_connection_begins_is_not_undone() -> None:
    profile, connection = ClientProfile(bot=False), Connection()
    session = cast(IrcSession, connection)
    await profile.publish(None, STATE, "idle")
    await profile.publish(None, UserKey.TASK.value, "tea")

    async def changed() -> None:
        await profile.publish(session, STATE, "working")
        await profile.publish(session, UserKey.TASK.value, None)

    connection.meanwhile = changed
    await profile.publish_all(session)
    told = {line.params[2]: line.params[3:] for line in connection.lines if line.params[1] == "SET"}
    assert told == {STATE: ("working",), UserKey.TASK.value: ()}


async def test_whoever_comes_later_sees_it_too(ircd: IRCd, come: Come) -> None:
    ada = await come(ircd.port, "spark-ada", ["#general"])
    await ada.irc.set_metadata(STATE, "asking")
    bob = await come(ircd.port, "spark-bob", ["#general"])
    seen = bob.irc.view.user("spark-ada")
    assert seen is not None and seen.metadata == {STATE: "asking"}


async def test_metadata_that_is_refused(ircd: IRCd, come: Come) -> None:
    ada = await come(ircd.port, "spark-ada", ["#general"])
    await come(ircd.port, "spark-bob", ["#general"])
    with pytest.raises(NotSent) as refused:
        await ada.irc.set_metadata(STATE, "idle", target="spark-bob")
    assert refused.value.code == "KEY_NO_PERMISSION"
    with pytest.raises(NotSent, match="Only its operators"):
        await ada.irc.set_metadata("agentirc.dev/purpose", "tea", target="#general")
    await ada.irc.join_channel("#tea")  # its own, whose operator it is
    assert await ada.irc.set_metadata("agentirc.dev/purpose", "tea", target="#tea")
    assert await ada.irc.get_metadata("#tea", "agentirc.dev/purpose") == {"agentirc.dev/purpose": "tea"}
    assert ada.irc.view.channel_metadata("#tea") == {"agentirc.dev/purpose": "tea"}


async def test_the_bot_mode_is_set_before_anybody_sees_us(ircd: IRCd, come: Come) -> None:
    async with registered(ircd.port, "spark-ori", caps="message-tags") as ori:
        await ori.join("#general")
        async with proxied(ircd.port) as way:
            await come(way.port, "spark-ada", ["#general"])
            sent = way.recorded("server")
            assert sent.index(b"MODE spark-ada +B") < sent.index(b"JOIN #general")


async def test_an_invitation_is_told(ircd: IRCd, come: Come) -> None:
    ada = await come(ircd.port, "spark-ada", ["#general"])
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#tea")
        ori.send("INVITE spark-ada #tea")
        await ada.until(lambda: [(channel, by and by.nick) for channel, by in ada.invited] == [("#tea", "spark-ori")])
    assert ada.irc.channels == ["#general"]


async def test_a_receipt_is_told(ircd: IRCd, come: Come) -> None:
    ada = await come(ircd.port, "spark-ada", ["#general"])
    (msgid,) = await ada.irc.send_privmsg("#general", "hello")
    await ada.until(lambda: ada.receipts == [(msgid, Receipt.STORED)])


async def test_history_between_two_messages(ircd: IRCd, come: Come) -> None:
    ada = await come(ircd.port, "spark-ada", ["#general"])
    ids = [(await ada.irc.send_privmsg("#general", f"number {number}"))[0] for number in range(6)]

    async def texts(**asked: object) -> list[str]:
        return [message.text for message in await ada.irc.history("#general", **asked)]  # type: ignore[arg-type]

    assert await texts(limit=2) == ["number 4", "number 5"]
    assert await texts(after=ids[3]) == ["number 4", "number 5"]
    assert await texts(before=ids[2]) == ["number 0", "number 1"]
    assert await texts(after=ids[0], before=ids[3]) == ["number 1", "number 2"]
    assert [message.msgid for message in await ada.irc.read("#general")] == ids
    with pytest.raises(NotSent):
        await ada.irc.history("#nowhere")


async def test_notices_are_sent_and_refused_alike(ircd: IRCd, come: Come) -> None:
    ada = await come(ircd.port, "spark-ada", ["#general"])
    bob = await come(ircd.port, "spark-bob", ["#general"])
    (msgid,) = await ada.irc.send_notice("#general", "done\nand dusted")
    heard = await bob.hears("done\nand dusted")
    assert heard.notice and heard.msgid == msgid and heard.mentions == ()
    with pytest.raises(NotSent, match="did not pass it on"):
        await ada.irc.send_notice("spark-nobody", "hello")


@pytest.mark.fault("E20")
async def test_no_text_of_a_model_is_ever_a_command(ircd: IRCd, come: Come) -> None:
    """CR, LF, NUL, CTCP, 300 lines, 50 kB."""
    ada = await come(ircd.port, "spark-ada", ["#general"])
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        nasty = "a\r\nQUIT :bye\rPART #general\nJOIN 0\0KILL ada\n\x01DCC SEND x\x01\n" + "line\n" * 300 + "x" * 50_000
        msgids = await ada.irc.send_privmsg("#general", nasty)
        assert len(msgids) > 1
        verbs = {line.verb for line in await ori.sync()}
    assert verbs == {"PRIVMSG"}
    assert ada.irc.connected and ada.irc.channels == ["#general"]
    await ada.until(lambda: len(ada.heard) == len(msgids))
    said = "".join(ada.texts)
    assert said.count("line") == 300 and said.count("x") >= 50_000 and "\x01" not in said


async def test_two_long_texts_do_not_mix(ircd: IRCd, come: Come) -> None:
    ada = await come(ircd.port, "spark-ada", ["#general"])
    texts = ["\n".join(f"{letter}{number}" * 20 for number in range(150)) for letter in "ab"]
    sent = await asyncio.gather(*(ada.irc.send_privmsg("#general", text) for text in texts))
    await ada.until(lambda: len(ada.heard) == sum(map(len, sent)))
    heard = [message.msgid for message in ada.heard]
    assert heard in ([*sent[0], *sent[1]], [*sent[1], *sent[0]])
