"""REDACT of what the server itself does not remember any more: the history does."""

from pathlib import Path

from tests.skills.history.playing import CAPS, Room, room, texts
from tests.support.client import Client

REDACTING = f"{CAPS} draft/message-redaction"


async def redact(client: Client, target: str, msgid: str) -> str:
    """REDACT, or why not."""
    await client.sync()
    [answer] = await client.ask(f"REDACT {target} {msgid}")
    return answer.verb if answer.verb == "REDACT" else answer.params[1]


async def come(here: Room, name: str, *channels: str, account: str | None = None) -> Client:
    return await here.join(f"spark-{name}", *channels, caps=REDACTING, account=name if account is None else account)


async def test_the_account_takes_back_its_own_after_a_restart(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        ori, ada = await come(here, "ori", "#a"), await come(here, "ada", "#a")
        [in_channel] = await here.say(ori, "#a", "wrong")
        [in_private] = await here.say(ori, "spark-ada", "wrong too")
        [hers] = await here.say(ada, "spark-ori", "hers")
    async with room(tmp_path) as here:
        here.clock.now += 1_000
        ada, ori = await come(here, "ada", "#a"), await come(here, "ori", "#a")
        assert await texts(ada, "LATEST #a * 10") == ["wrong"]
        assert await redact(ori, "#a", in_channel.tags["msgid"]) == "REDACT"
        assert (await ada.expect("REDACT", "#a")).params == ("#a", in_channel.tags["msgid"])
        assert await redact(ori, "spark-ada", in_private.tags["msgid"]) == "REDACT"
        assert (await ada.expect("REDACT", "spark-ada")).params == ("spark-ada", in_private.tags["msgid"])
        assert await redact(ori, "spark-ada", hers.tags["msgid"]) == "REDACT_FORBIDDEN"
        for target, message in (("#a", in_channel), ("spark-ada", in_private)):
            assert await redact(ori, target, message.tags["msgid"]) == "UNKNOWN_MSGID"
        assert await texts(ada, "LATEST #a * 10") == []
        assert await texts(ada, "LATEST spark-ori * 10") == ["hers"]


async def test_nobody_else_does(tmp_path: Path) -> None:
    """Not a guest of the same nick, not another account, not who made a channel of that name anew."""
    async with room(tmp_path) as here:
        ori, ada = await come(here, "ori", "#a"), await come(here, "ada")
        [in_channel] = await here.say(ori, "#a", "hello")
        [in_private] = await here.say(ori, "spark-ada", "hello")
        guest = await come(here, "guest", "#a", account="")
        [by_guest] = await here.say(guest, "#a", "as a guest")
    async with room(tmp_path) as here:
        here.clock.now += 1_000
        eve = await come(here, "eve", "#a")
        ada = await come(here, "ada", "#a")
        pretender = await come(here, "ori", "#a", account="")
        again = await come(here, "guest", "#a", account="")
        for client in (eve, ada, pretender, again):
            for message in (in_channel, by_guest, in_private):
                assert await redact(client, "#a", message.tags["msgid"]) == "UNKNOWN_MSGID"
        for client in (eve, pretender):
            assert await redact(client, "spark-ada", in_private.tags["msgid"]) == "UNKNOWN_MSGID"
        assert await texts(eve, "LATEST #a * 10") == ["hello", "as a guest"]


async def test_operators_take_back_what_was_said_since_the_channel_is_theirs(tmp_path: Path) -> None:
    """A registered channel is the same after a restart; its members are told from its operators."""
    async with room(tmp_path) as here:
        ori, ada = await come(here, "ori", "#a"), await come(here, "ada", "#a")
        [before] = await here.say(ada, "#a", "before")
        await ori.ask("MODE #a +P")
        [after] = await here.say(ada, "#a", "after")
    async with room(tmp_path) as here:
        here.clock.now += 1_000
        ori, eve = await come(here, "ori", "#a"), await come(here, "eve", "#a")
        assert await redact(eve, "#a", after.tags["msgid"]) == "REDACT_FORBIDDEN"
        assert await redact(ori, "#a", before.tags["msgid"]) == "REDACT"
        assert await redact(ori, "#a", after.tags["msgid"]) == "REDACT"
        assert await texts(eve, "LATEST #a * 10") == []


async def test_a_label_is_on_the_answer(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        [said] = await here.say(await come(here, "ori", "#a"), "#a", "wrong")
    async with room(tmp_path) as here:
        here.clock.now += 1_000
        ori = await here.join("spark-ori", "#a", caps=f"{REDACTING} labeled-response", account="ori")
        [answer] = await ori.ask(f"@label=1 REDACT #a {said.tags['msgid']}")
        assert (answer.verb, answer.tags["label"]) == ("REDACT", "1")
