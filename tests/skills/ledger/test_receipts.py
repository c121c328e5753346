"""RECEIPT: who said a message is told how far it has come, by whom it was for and by nobody else."""

from pathlib import Path

import pytest

from culture.protocol.message import Message
from culture.skills.keeping import Keeping
from tests.skills.history.playing import room
from tests.support.client import Client, registered
from tests.support.servers import Serve

CAPS = "message-tags echo-message agentirc.dev/receipts server-time"
STATES = ("delivered", "injected", "answered")


def is_receipt(message: Message) -> bool:
    return "agentirc.dev/receipt" in message.tags


async def said(client: Client, target: str, text: str = "hello") -> str:
    """Say something; its id."""
    client.send(f"PRIVMSG {target} :{text}")
    echo = await client.expect("PRIVMSG", target, where=lambda line: line.source.startswith(f"{client.nick}!"))
    return echo.tags["msgid"]


async def told(client: Client) -> tuple[str, str, str]:
    """The next receipt but the server's own: from whom, for which message, how far."""
    got = await client.expect("TAGMSG", where=lambda line: is_receipt(line) and "!" in line.source)
    assert got.params == (client.nick,)
    return got.source.partition("!")[0], got.tags["+draft/reply"], got.tags["agentirc.dev/receipt"]


def codes(lines: list[Message]) -> list[str]:
    return [line.params[1] for line in lines if line.verb == "FAIL"]


@pytest.mark.parametrize("private", [False, True])
async def test_the_states_come_to_the_sender_in_order(serve: Serve, private: bool) -> None:
    async with (
        serve() as ircd,
        registered(ircd.port, "spark-ori", CAPS) as ori,
        registered(ircd.port, "spark-claude", CAPS) as claude,
    ):
        for client in (ori, claude):
            await client.join("#work")
        msgid = await said(ori, "spark-claude" if private else "#work")
        stored = await ori.expect("TAGMSG", where=is_receipt)
        assert (stored.source, stored.tags["agentirc.dev/receipt"]) == ("spark", "stored")
        for state in STATES:
            assert await claude.ask(f"RECEIPT {state} {'spark-ori' if private else '#work'} {msgid}") is not None
            assert await told(ori) == ("spark-claude", msgid, state)
        assert not [line for line in claude.seen if is_receipt(line)]


async def test_several_in_a_line_and_each_once(serve: Serve) -> None:
    async with (
        serve() as ircd,
        registered(ircd.port, "spark-ori", CAPS) as ori,
        registered(ircd.port, "spark-claude", CAPS) as claude,
    ):
        for client in (ori, claude):
            await client.join("#work")
        ids = [await said(ori, "#work", str(number)) for number in range(12)]
        for _ in range(2):
            assert codes(await claude.ask(f"RECEIPT delivered #work {' '.join(ids)}")) == []
        assert [(await told(ori))[1] for _ in ids] == ids
        assert not [line for line in await ori.sync() if is_receipt(line) and "!" in line.source]
        assert codes(await claude.ask(f"RECEIPT delivered #work {' '.join(ids)} more")) == ["TOO_MANY"]


async def test_forged_receipts_are_refused(serve: Serve) -> None:
    """For what was said elsewhere, to others, by oneself, or never; and no client sets the tag."""
    async with (
        serve() as ircd,
        registered(ircd.port, "spark-ori", CAPS) as ori,
        registered(ircd.port, "spark-claude", CAPS) as claude,
        registered(ircd.port, "spark-eve", CAPS) as eve,
    ):
        for client in (ori, claude):
            await client.join("#work")
        await eve.join("#other")
        in_channel, in_private = await said(ori, "#work"), await said(ori, "spark-claude")
        own = await said(eve, "#other")
        await ori.sync()
        attempts = {
            f"#work {in_channel}": "INVALID_TARGET",
            f"#other {in_channel}": "UNKNOWN_MSGID",
            f"spark-ori {in_private}": "UNKNOWN_MSGID",
            f"spark-claude {in_private}": "UNKNOWN_MSGID",
            f"spark-ori {in_channel}": "UNKNOWN_MSGID",
            f"#other {own}": "UNKNOWN_MSGID",
            "#other spark.never.1": "UNKNOWN_MSGID",
            "#nowhere x": "INVALID_TARGET",
        }
        assert {what: codes(await eve.ask(f"RECEIPT answered {what}")) for what in attempts} == {
            what: [code] for what, code in attempts.items()
        }
        assert codes(await eve.ask(f"RECEIPT stored #other {own}")) == ["INVALID_STATE"]
        await eve.ask(f"@agentirc.dev/receipt=answered;+draft/reply={in_private} TAGMSG spark-ori")
        assert not [line for line in await ori.sync() if is_receipt(line) and "!" in line.source]


async def test_what_is_not_known_is_said_under_the_label(serve: Serve) -> None:
    async with (
        serve() as ircd,
        registered(ircd.port, "spark-ori", CAPS) as ori,
        registered(ircd.port, "spark-claude", f"{CAPS} labeled-response batch") as claude,
    ):
        for client in (ori, claude):
            await client.join("#work")
        msgid = await said(ori, "#work")
        answers = await claude.ask(f"@label=a RECEIPT delivered #work {msgid} spark.gone.1")
        [answer] = [line for line in answers if line.tags.get("label") == "a"]
        assert (answer.verb, answer.params[:4]) == ("FAIL", ("RECEIPT", "UNKNOWN_MSGID", "#work", "spark.gone.1"))


async def test_who_has_another_nick_now_is_told(serve: Serve) -> None:
    async with (
        serve() as ircd,
        registered(ircd.port, "spark-ori", CAPS) as ori,
        registered(ircd.port, "spark-claude", CAPS) as claude,
    ):
        msgid = await said(ori, "spark-claude")
        await ori.ask("NICK spark-oriol")
        ori.nick = "spark-oriol"
        await claude.ask(f"RECEIPT injected spark-ori {msgid}")
        assert await told(ori) == ("spark-claude", msgid, "injected")


async def test_who_did_not_ask_is_not_told(serve: Serve) -> None:
    async with (
        serve() as ircd,
        registered(ircd.port, "spark-ori", "message-tags echo-message") as ori,
        registered(ircd.port, "spark-claude", CAPS) as claude,
    ):
        msgid = await said(ori, "spark-claude")
        assert codes(await claude.ask(f"RECEIPT injected spark-ori {msgid}")) == []
        assert not [line for line in await ori.sync() if is_receipt(line)]


async def test_what_was_said_before_a_restart_is_found_in_the_history(tmp_path: Path) -> None:
    """By whom it was for and nobody else: not by whoever else is logged in, nor by a guest of that nick."""
    async with room(tmp_path) as here:
        ori = await here.join("spark-ori", "#a", caps=CAPS, account="ori")
        await here.join("spark-bee", "#a", caps=CAPS, account="bee")
        [in_channel] = await here.say(ori, "#a", "hello")
        [in_private] = await here.say(ori, "spark-bee", "hello")
    for account, nick in (("eve", "spark-eve"), ("", "spark-bee")):
        async with room(tmp_path) as here:
            other = await here.join(nick, "#b", caps=CAPS, account=account)
            for place, message in (("#b", in_channel), ("spark-ori", in_channel), ("spark-ori", in_private)):
                msgid = message.tags["msgid"]
                assert codes(await other.ask(f"RECEIPT answered {place} {msgid}")) == ["UNKNOWN_MSGID"]
    async with room(tmp_path) as here:
        bee = await here.join("spark-bee", "#a", caps=CAPS, account="bee")
        ori = await here.join("spark-ori", "#a", caps=CAPS, account="ori")
        for place, message in (("#a", in_channel), ("spark-ori", in_private)):
            msgid = message.tags["msgid"]
            assert codes(await bee.ask(f"RECEIPT answered {place} {msgid}")) == []
            assert await told(ori) == ("spark-bee", msgid, "answered")
            assert codes(await ori.ask(f"RECEIPT answered {place} {msgid}")) == ["UNKNOWN_MSGID"]
    async with room(tmp_path) as here:
        bee = await here.join("spark-bee", "#a", caps=CAPS, account="bee")
        pretender = await here.join("spark-ori", "#a", caps=CAPS, account="")
        # That nick is somebody else now: the ledger has it, and nobody is told.
        assert codes(await bee.ask(f"RECEIPT injected spark-ori {in_private.tags['msgid']}")) == []
        assert not [line for line in await pretender.sync() if is_receipt(line)]


async def test_what_somebody_said_who_is_gone_is_found_in_the_history(tmp_path: Path) -> None:
    """Their nick alone does not tell who they were; the message does."""
    async with room(tmp_path) as here:
        guest = await here.join("spark-guest", caps=CAPS, account="ori")
        await here.join("spark-bee", caps=CAPS, account="bee")
        [message] = await here.say(guest, "spark-bee", "hello")
    async with room(tmp_path) as here:
        bee = await here.join("spark-bee", caps=CAPS, account="bee")
        for _ in range(2):
            assert codes(await bee.ask(f"RECEIPT answered spark-guest {message.tags['msgid']}")) == []
        rows = await bee.ask(f"LEDGER GET receipt * key={message.tags['msgid']}")
        assert [row.params[0] for row in rows if row.verb == "LEDGER"] == ["spark-bee"]
        eve = await here.join("spark-eve", caps=CAPS, account="eve")
        assert codes(await eve.ask(f"RECEIPT answered spark-guest {message.tags['msgid']}")) == ["UNKNOWN_MSGID"]


async def test_a_member_has_got_what_came_when_the_channel_was_not_here(tmp_path: Path) -> None:
    """As happens on a server that was killed, and learns from its peers what it lost."""
    async with room(tmp_path) as here:
        ori = await here.join("spark-ori", "#a", caps=CAPS, account="ori")
        await ori.ask("MODE #a +i")
        [message] = await here.say(ori, "#a", "hello")
    async with room(tmp_path) as here:
        here.clock.now += 1000
        bee = await here.join("spark-bee", "#a", caps=CAPS, account="bee")
        assert codes(await bee.ask(f"RECEIPT delivered #a {message.tags['msgid']}")) == []


async def test_one_that_found_no_room_is_kept_when_it_is_said_again(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        serve() as ircd,
        registered(ircd.port, "spark-ori", CAPS) as ori,
        registered(ircd.port, "spark-claude", CAPS) as claude,
    ):
        msgid = await said(ori, "spark-claude")
        with monkeypatch.context() as full:
            full.setattr(Keeping, "most_before", lambda keeping, fact: 0)
            assert codes(await claude.ask(f"RECEIPT answered spark-ori {msgid}")) == ["UNAVAILABLE"]
        await claude.ask("MODE spark-claude +B")
        await claude.ask("@+agentirc.dev/fact={} LEDGER PUT state now")  # there is room again, and that is noticed
        assert not codes(await claude.ask(f"RECEIPT answered spark-ori {msgid}"))
        found = await claude.ask(f"LEDGER GET receipt key={msgid}")
        assert [line.params[2] for line in found if line.verb == "LEDGER"] == [f"{msgid}/answered"]
