"""What is to be said once: a connection that breaks while it is said neither loses nor repeats any of it."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from culture.clients.shared import outbox
from culture.clients.shared.once import Once
from culture.clients.shared.outbox import Outbox
from culture.clients.shared.records import Records
from culture.protocol.message import Message as Line
from culture.protocol.vocabulary import ClientTag, UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.ircd import IRCd
from culture.transport import Address, ClientIdentity, ConnectionState, IRCTransport, Message, NotSent, Timing
from tests.clients.shared.test_daemon import NICK
from tests.support.client import Client, registered
from tests.support.proxy import proxied
from tests.support.servers import serving
from tests.support.waiting import PATIENCE, until

QUICK = Timing(first_pause=0.02, longest_pause=0.1)
BARE = ClientIdentity(NICK)
PARTS = [letter * 4000 for letter in "abc"]
"""Each of them fills a message of several lines."""


@pytest.fixture
def records(home: Path) -> Iterator[Records]:
    made = Records(home / "inbox" / f"{NICK}.db")
    yield made
    made.close()


class Speaker:
    """Somebody with an outbox."""

    def __init__(self, records: Records, port: int, identity: ClientIdentity) -> None:
        self.irc = IRCTransport(
            Address("127.0.0.1", port),
            identity,
            ["#general"],
            on_message=self._heard,
            on_state=self._changed,
            on_line=self._line,
            timing=QUICK,
        )
        self.once = Once(NICK, records, self.irc)
        self.outbox = Outbox(records, self.irc, self.once, again=0.01)
        self.says_when_it_comes_back = ""

    def _heard(self, message: Message) -> None:
        self.once.heard(message)

    def _changed(self, condition: ConnectionState, why: str) -> None:
        self.outbox.wake()

    def _line(self, line: Line) -> None:
        """The first line of the server after it let us in: no channel was joined yet."""
        said, self.says_when_it_comes_back = self.says_when_it_comes_back, ""
        if said:
            self.outbox.say("#general", said)


@asynccontextmanager
async def speaker(records: Records, port: int, identity: ClientIdentity = BARE) -> AsyncIterator[Speaker]:
    there = Speaker(records, port, identity)
    await there.irc.start()
    there.outbox.start()
    try:
        yield there
    finally:
        await there.outbox.stop()
        await there.irc.stop()


async def said_until(client: Client, last: str, place: str = "#general") -> str:
    """All that the agent has said, up to this."""
    texts: list[str] = []
    while not texts or not texts[-1].endswith(last):
        texts.append((await client.expect("PRIVMSG", place)).params[1])
    return "".join(texts)


async def test_what_breaks_off_in_the_middle_goes_on_there(ircd: IRCd, records: Records) -> None:
    async with registered(ircd.port, "spark-ori") as ori, proxied(ircd.port) as line:
        await ori.join("#general")
        async with speaker(records, line.port) as ada:
            line.drop("client")
            ada.outbox.say("#general", "\n".join(PARTS))
            # The first part is on the server, and nobody has told who said it.
            first = await said_until(ori, "a" * 100)
            line.cut()
            line.heal()
            ada.outbox.say("#general", "end")
            assert first + await said_until(ori, "end") == "".join(PARTS) + "end"
            await until(lambda: records.execute("SELECT count(*) FROM outbox").fetchone() == (0,))
            assert records.execute("SELECT count(*) FROM sendings").fetchone() == (0,)


async def test_one_that_is_logged_in_says_it_once_in_private_as_well(tmp_path: Path, records: Records) -> None:
    accounts = AccountStore(tmp_path / "accounts.json", "spark")
    accounts.add(new_account("claude", UserClass.AGENT))
    identity = ClientIdentity(NICK, "claude", accounts.add_token("claude", "daemon"))
    async with (
        serving(tmp_path / "server", accounts_file=accounts.path) as ircd,
        registered(ircd.port, "spark-ori") as ori,
        proxied(ircd.port) as line,
        speaker(records, line.port, identity) as ada,
    ):
        line.drop("client")
        ada.outbox.say("spark-ori", "psst")
        assert await said_until(ori, "psst", "spark-ori") == "psst"
        line.cut()
        line.heal()
        ada.outbox.say("spark-ori", "end")
        assert await said_until(ori, "end", "spark-ori") == "end"


@pytest.mark.parametrize("nick", ["thor-ann", "spark-ann"])
async def test_an_answer_waits_for_a_user_who_is_not_there(tmp_path: Path, records: Records, nick: str) -> None:
    """The agent has worked on what they asked in private; others hear of it meanwhile."""
    async with (
        serving(tmp_path / "server", nick_prefix="off") as ircd,
        registered(ircd.port, "spark-ori") as ori,
        speaker(records, ircd.port) as ada,
    ):
        await ori.join("#general")
        ada.outbox.say(nick, "it is 42")
        ada.outbox.say(nick, "a notice", notice=True)
        ada.outbox.say("#general", "said")
        assert await said_until(ori, "said") == "said"
        await until(lambda: records.execute("SELECT text FROM outbox").fetchall() in ([("it is 42",), ("a notice",)],))
        async with registered(ircd.port, "thor-bob") as ann:
            ann.send(f"NICK {nick}")
            assert await said_until(ann, "42", nick) == "it is 42"
            await ann.expect("NOTICE", nick, where=lambda each: each.params[1] == "a notice")
        await until(lambda: records.execute("SELECT count(*) FROM outbox").fetchone() == (0,))
        assert records.execute("SELECT count(*) FROM sendings").fetchone() == (0,)


@pytest.mark.parametrize(("nick", "limit"), [("thor-ann", "LONGEST_AWAY"), ("spark-ann", "LONGEST_GONE")])
async def test_an_answer_to_a_user_who_stays_away_is_given_up(
    ircd: IRCd,
    records: Records,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    nick: str,
    limit: str,
) -> None:
    monkeypatch.setattr(outbox, limit, 0.05)
    async with speaker(records, ircd.port) as ada:
        ada.outbox.say(nick, "it is 42")
        await until(lambda: records.execute("SELECT count(*) FROM outbox").fetchone() == (0,))
    assert f"cannot say something in {nick}: No such nick" in caplog.text


async def test_nothing_is_said_before_it_is_in_its_channels_again(ircd: IRCd, records: Records) -> None:
    """The server would refuse it, and it would be lost."""
    async with registered(ircd.port, "spark-ori") as ori, proxied(ircd.port) as line:
        await ori.join("#general")
        async with speaker(records, line.port) as ada:
            ada.says_when_it_comes_back = "the answer"
            line.cut()
            await ori.expect("QUIT")
            line.heal()
            assert await said_until(ori, "answer") == "the answer"


async def test_an_older_letter_without_a_key_is_said(ircd: IRCd, records: Records) -> None:
    records.execute("INSERT INTO outbox (place, text, notice, tags) VALUES ('#general', 'old', 0, '{}')")
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        async with speaker(records, ircd.port):
            assert await said_until(ori, "old") == "old"
            await until(lambda: records.execute("SELECT count(*) FROM outbox").fetchone() == (0,))


async def test_letter_whose_echo_is_uncertain_stays_until_it_is_certain(records: Records) -> None:
    """Settled again at once, nobody knows yet whether it was said: the letter must neither be lost nor overtaken."""
    refusals = [NotSent("the server did not answer", uncertain=True), NotSent("cannot send", "404"), None, None]
    said: list[str] = []

    class Again(Once):
        async def say(self, place: str, text: str, tags: Mapping[str, str], *, notice: bool = False) -> list[str]:
            said.append(f"{text} {tags[ClientTag.ONCE.value]}")
            if (refusal := refusals.pop(0)) is not None:
                raise refusal
            return ["m1"]

    transport = cast(IRCTransport, SimpleNamespace(settled=True))
    outbox = Outbox(records, transport, Again(NICK, records, transport), again=0.001)
    for text in ("one", "two", "three"):
        outbox.say("#general", text)
    outbox.start()
    try:
        await until(lambda: records.execute("SELECT count(*) FROM outbox").fetchone() == (0,))
    finally:
        await outbox.stop()
    assert [each.split()[0] for each in said] == ["one", "one", "two", "three"]
    assert said[0] == said[1], "under the same key, by which the server's echo is recognised"


async def test_who_waits_for_it_knows_that_it_was_said_though_the_connection_broke(
    ircd: IRCd, records: Records
) -> None:
    async with registered(ircd.port, "spark-ori") as ori, proxied(ircd.port) as line:
        await ori.join("#general")
        async with speaker(records, line.port) as ada:
            line.drop("client")
            saying = asyncio.create_task(ada.once.say_surely("#general", "hello", {}))
            assert await said_until(ori, "hello") == "hello"
            line.cut()
            line.heal()
            async with asyncio.timeout(PATIENCE):
                msgids = await saying
            assert len(msgids) == 1
            ada.outbox.say("#general", "end")
            assert await said_until(ori, "end") == "end"
            with pytest.raises(NotSent):
                await ada.once.say_surely("#nowhere", "hello", {})
            await until(lambda: records.execute("SELECT count(*) FROM sendings").fetchone() == (0,))


def test_what_others_say_under_our_key_is_not_ours(home: Path, records: Records) -> None:
    once = Once(NICK, records, IRCTransport(Address("127.0.0.1"), ClientIdentity(NICK)))
    records.execute("INSERT INTO sendings (key) VALUES ('k')")
    said = {"channel": "#general", "text": "x", "timestamp": None, "tags": {ClientTag.ONCE.value: "k"}}
    once.heard(Message(sender="spark-eve", msgid="m1", **said))  # type: ignore[arg-type]
    assert once._said("k") == []
    for _ in range(2):
        once.heard(Message(sender=NICK, msgid="m2", **said))  # type: ignore[arg-type]
    assert once._said("k") == ["m2"]
