"""Who may read what: channels by HISTORY and CHATHISTORY, private conversations by CHATHISTORY."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.config.model import Operator
from culture.protocol.message import Message
from culture.server.events import AccountSet
from culture.skills.history.access import Access
from culture.skills.history.sqlite import SQLiteStore
from tests.skills.history.playing import ALL, CAPS, EVENTS, Room, failure, history, room, targets, texts
from tests.support.client import Client, connected, registered
from tests.support.people import accounts_of
from tests.support.servers import serving

OPERATOR = Operator(name="root", password="choose-your-own")
MEMBERS_ONLY = ("INVALID_TARGET", "LATEST", "#a")


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Room]:
    async with room(tmp_path, operators=(OPERATOR,)) as opened:
        yield opened


async def told(client: Client, channel: str = "#a") -> list[str]:
    """What HISTORY says was said there."""
    answer = await client.ask(f"HISTORY RECENT {channel} 100")
    assert answer[-1].verb == "HISTORYEND", answer
    return [row.params[-1] for row in answer[:-1]]


async def refused(client: Client, channel: str = "#a") -> bool:
    answer = await client.ask(f"HISTORY RECENT {channel} 100")
    return [message.verb for message in answer] == ["442"]


async def leave(client: Client) -> None:
    client.send("QUIT")
    await client.ended()


# Channels


@pytest.mark.requirement("D16")
async def test_an_open_channel_is_read_without_being_in_it(here: Room) -> None:
    ori = await here.join("spark-ori", "#a")
    await here.say(ori, "#a", "in the open")
    stranger = await here.join("spark-eve", caps="")
    assert await told(stranger) == ["in the open"]


@pytest.mark.requirement("D16")
@pytest.mark.parametrize("mode", ["+i", "+k sesame", "+s"])
async def test_where_not_everybody_may_come_only_members_read(here: Room, mode: str) -> None:
    ori = await here.join("spark-ori", "#a")
    await ori.ask(f"MODE #a {mode}")
    await here.say(ori, "#a", "behind closed doors")
    stranger = await here.join("spark-eve")
    assert await refused(stranger)
    assert await told(ori) == ["behind closed doors"]


@pytest.mark.requirement("D16")
async def test_reading_takes_a_registered_client(here: Room) -> None:
    ori = await here.join("spark-ori", "#a")
    await here.say(ori, "#a", "in the open")
    async with connected(here.ircd.port) as client:
        client.send("HISTORY RECENT #a 10")
        assert (await client.receive()).verb == "451"
        client.send("CHATHISTORY LATEST #a * 10")
        assert (await client.receive()).verb == "451"


@pytest.mark.requirement("D16")
async def test_who_is_banned_does_not_read(here: Room) -> None:
    """Being in it is what a ban keeps one from; an exception lets one."""
    ori = await here.join("spark-ori", "#a")
    await here.say(ori, "#a", "in the open")
    eve = await here.join("spark-eve")
    await ori.ask("MODE #a +b spark-eve!*@*")
    assert await refused(eve)
    assert await failure(eve, "LATEST #a * 10") == MEMBERS_ONLY
    await ori.ask("MODE #a +e spark-eve!*@*")
    assert await told(eve) == ["in the open"]


@pytest.mark.requirement("D16")
async def test_what_was_said_behind_closed_doors_stays_there(here: Room) -> None:
    """Opened later, a channel shows others nothing of it; its members read all."""
    ori = await here.join("spark-ori", "#a")
    await here.say(ori, "#a", "before")
    await ori.ask("MODE #a +s")
    await here.say(ori, "#a", "secret")
    await ori.ask("MODE #a -s")
    await here.say(ori, "#a", "after")
    eve = await here.join("spark-eve")
    assert await told(eve) == ["before", "after"]
    assert [row.params[-1] for row in (await eve.ask("HISTORY SEARCH #a :secret"))[:-1]] == []
    await eve.join("#a")
    assert await told(eve) == ["before", "secret", "after"]
    assert await texts(eve, "LATEST #a * 10") == ["before", "secret", "after"]


@pytest.mark.requirement("D16")
async def test_of_a_channel_that_is_no_more_what_was_said_in_the_open_is_read(here: Room) -> None:
    ori = await here.join("spark-ori", "#a")
    await here.say(ori, "#a", "open")
    await ori.ask("MODE #a +k sesame")
    await here.say(ori, "#a", "secret")
    await ori.ask("PART #a")
    assert await told(ori) == ["open"]
    assert await failure(ori, "LATEST #a * 10") == MEMBERS_ONLY


async def test_chathistory_is_for_members(here: Room) -> None:
    """A channel that is not there looks like one that one is not in; an IRC operator is a user like others."""
    ori = await here.join("spark-ori", "#a")
    await here.say(ori, "#a", "in the open")
    eve = await here.join("spark-eve")
    assert (await eve.ask("OPER root choose-your-own"))[0].verb == "381"
    await ori.ask("MODE #a +s")
    answers = [(await eve.ask(f"CHATHISTORY LATEST {name} * 10"))[0] for name in ("#a", "#b")]
    assert [str(answer).replace("#b", "#a") for answer in answers] == [str(answers[0])] * 2
    assert await refused(eve)
    assert await targets(eve) == []


async def test_who_left_or_was_kicked_reads_no_more(here: Room) -> None:
    ori = await here.join("spark-ori", "#a")
    ada = await here.join("spark-ada", "#a")
    eve = await here.join("spark-eve", "#a")
    await here.say(ori, "#a", "hello")
    assert await texts(eve, "LATEST #a * 10") == ["hello"]
    await ada.ask("PART #a")
    await ori.ask("KICK #a spark-eve")
    assert await failure(ada, "LATEST #a * 10") == MEMBERS_ONLY
    assert await failure(eve, "LATEST #a * 10") == MEMBERS_ONLY


async def test_a_secret_channel_made_anew_has_no_past(here: Room) -> None:
    """Neither its messages nor what happened, nor a message to count from."""
    ori = await here.join("spark-ori", "#a")
    await ori.ask("MODE #a +s")
    [secret] = await here.say(ori, "#a", "secret")
    await ori.ask("PART #a")
    here.clock.now += 1
    eve = await here.join("spark-eve", "#a", caps=EVENTS)
    assert await told(eve) == []
    assert [row.verb for row in await history(eve, "LATEST #a * 100")] == ["JOIN", "JOIN"]
    assert (await failure(eve, f"AFTER #a msgid={secret.tags['msgid']} 10"))[0] == "MESSAGE_ERROR"
    assert await texts(eve, f"AFTER #a timestamp={secret.tags['time']} 1") == ["#a"]
    assert await targets(eve) == []


async def test_nor_has_one_that_takes_its_name(here: Room) -> None:
    eve = await here.join("spark-eve", "#b", caps=f"{CAPS} draft/channel-rename")
    await here.say(eve, "#b", "ours")
    ori = await here.join("spark-ori", "#a")
    await ori.ask("MODE #a +s")
    await here.say(ori, "#a", "secret")
    await ori.ask("PART #a")
    here.clock.now += 1
    await eve.ask("RENAME #b #a :a good name")
    here.clock.now += 1
    await eve.ask("MODE #a +s")
    await here.say(eve, "#a", "our secret")
    assert await texts(eve, "LATEST #a * 100") == ["ours", "our secret"]
    assert await told(eve) == ["ours", "our secret"]


async def test_nor_a_standing_one_that_everybody_had_left(here: Room) -> None:
    """Whoever comes first into the empty channel has no claim; whoever comes while somebody is there has."""
    ori = await here.join("spark-ori", "#general")
    await here.say(ori, "#general", "open")
    await ori.ask("MODE #general +s")
    await here.say(ori, "#general", "secret")
    ada = await here.join("spark-ada", "#general")
    assert await texts(ada, "LATEST #general * 10") == ["open", "secret"]
    await ori.ask("PART #general")
    assert await texts(ada, "LATEST #general * 10") == ["open", "secret"]
    await ada.ask("PART #general")
    here.clock.now += 1
    eve = await here.join("spark-eve", "#general")
    assert await texts(eve, "LATEST #general * 10") == ["open"]
    assert await told(eve, "#general") == ["open"]


async def test_a_registered_channel_keeps_all_for_its_members(tmp_path: Path) -> None:
    async with room(tmp_path) as here:
        ori = await here.join("spark-ori", "#a", account="ori")
        await ori.ask("MODE #a +Pi")
        await here.say(ori, "#a", "ours")
        await ori.ask("PART #a")
        here.clock.now += 1
        await ori.join("#a")
        assert await texts(ori, "LATEST #a * 10") == ["ours"]
    async with room(tmp_path) as here:
        here.clock.now += 100
        eve = await here.join("spark-eve")
        assert await refused(eve)
        ori = await here.join("spark-ori", "#a", account="ori")
        assert await texts(ori, "LATEST #a * 10") == ["ours"]


async def test_what_was_said_to_a_rank_is_for_that_rank(here: Room) -> None:
    ori = await here.join("spark-ori", "#a")
    ada = await here.join("spark-ada", "#a")
    eve = await here.join("spark-eve", "#a")
    await ori.ask("MODE #a +v spark-ada")
    for target in ("#a", "+#a", "@#a"):
        await here.say(ori, target, f"to {target}")
    for client, heard in ((ori, 3), (ada, 2), (eve, 1)):
        expected = ["to #a", "to +#a", "to @#a"][:heard]
        assert await texts(client, "LATEST #a * 10") == expected
        assert await told(client) == expected
    stranger = await here.join("spark-zoe")
    assert await told(stranger) == ["to #a"]
    assert [row.params for row in await history(ori, "LATEST #a * 1")] == [("@#a", "to @#a")]


# In private


async def chat(here: Room, one: Client, other: Client, *texts: str) -> list[Message]:
    """They speak in turn, the first one first."""
    said = []
    for position, text in enumerate(texts):
        speaker, hearer = (one, other) if position % 2 == 0 else (other, one)
        said += await here.say(speaker, hearer.nick, text)
        await hearer.expect("PRIVMSG", hearer.nick, text)
    return said


async def test_both_read_what_they_said_to_each_other(here: Room) -> None:
    ori = await here.join("spark-ori", account="ori")
    ada = await here.join("spark-ada", account="ada")
    zoe = await here.join("spark-zoe", account="zoe")
    await chat(here, ori, ada, "hello", "hi", "lunch?")
    await chat(here, ori, zoe, "another talk")
    assert await texts(ori, "LATEST spark-ada * 10") == ["hello", "hi", "lunch?"]
    assert await texts(ada, "LATEST spark-ori * 10") == ["hello", "hi", "lunch?"]
    assert await targets(ori) == ["spark-ada", "spark-zoe"]
    rows = await history(ada, "LATEST SPARK-ORI * 2", "SPARK-ORI")
    assert [(row.source.partition("!")[0], *row.params) for row in rows] == [
        ("spark-ada", "spark-ori", "hi"),
        ("spark-ori", "spark-ada", "lunch?"),
    ]


async def test_nobody_else_reads_it(here: Room) -> None:
    """Not with a login, not without, not as an operator, not by HISTORY, not by a message's id."""
    ori = await here.join("spark-ori", account="ori")
    ada = await here.join("spark-ada", account="ada")
    said = await chat(here, ori, ada, "hello", "hi")
    for nick, account in (("spark-zoe", "zoe"), ("spark-eve", "")):
        other = await here.join(nick, "#a", account=account, caps=EVENTS)
        await other.ask("OPER root choose-your-own")
        for target in ("spark-ori", "spark-ada", nick):
            assert await texts(other, f"LATEST {target} * 10") == []
            question = f"AROUND {target} msgid={said[0].tags['msgid']} 10"
            assert (await failure(other, question))[0] == "MESSAGE_ERROR"
        for place in ("a:ada a:ori", ":a:ada a:ori"):
            assert {each.verb for each in await other.ask(f"CHATHISTORY LATEST {place} * 10")} == {"FAIL"}
            assert "hello" not in str(await other.ask(f"HISTORY RECENT {place} 10"))
        assert "hello" not in str(await other.ask("HISTORY SEARCH #a :hello"))
        assert await targets(other) == []


async def test_an_account_reads_its_talks_under_any_nick_and_after_a_restart(tmp_path: Path) -> None:
    accounts_of(tmp_path, "ori", "ada")
    async with room(tmp_path, nick_prefix="off") as here:
        ori = await here.join("ori", account="ori")
        ada = await here.join("ada", account="ada")
        await chat(here, ori, ada, "hello", "hi")
        await ori.ask("NICK captain")
        assert await texts(ori, "LATEST ada * 10") == ["hello", "hi"]
        assert await texts(ada, "LATEST captain * 10") == ["hello", "hi"]
    async with room(tmp_path, nick_prefix="off") as here:
        here.clock.now += 1_000
        ori = await here.join("sailor", account="ori")
        assert await texts(ori, "LATEST ada * 10") == ["hello", "hi"]
        assert await targets(ori) == ["ada"]


async def test_a_guest_reads_what_was_said_since_they_came(here: Room) -> None:
    ori = await here.join("spark-ori")
    ada = await here.join("spark-ada", account="ada")
    await chat(here, ori, ada, "hello", "hi")
    assert await texts(ori, "LATEST spark-ada * 10") == ["hello", "hi"]
    assert await texts(ada, "LATEST spark-ori * 10") == ["hello", "hi"]
    await leave(ori)
    assert await texts(ada, "LATEST spark-ori * 10") == ["hello", "hi"]
    assert await targets(ada) == ["spark-ori"]


@pytest.mark.parametrize("account", ["", "ori"])
async def test_who_takes_over_a_guests_nick_reads_nothing(here: Room, account: str) -> None:
    """Neither another guest nor an account that is called like that."""
    ori = await here.join("spark-ori")
    ada = await here.join("spark-ada")
    said = await chat(here, ori, ada, "hello", "hi")
    await leave(ori)
    here.clock.now += 1
    thief = await here.join("spark-ori", account=account)
    assert await texts(thief, "LATEST spark-ada * 10") == []
    assert await texts(thief, f"BETWEEN spark-ada {ALL}") == []
    assert (await failure(thief, f"AFTER spark-ada msgid={said[0].tags['msgid']} 10"))[0] == "MESSAGE_ERROR"
    assert await targets(thief) == []
    await chat(here, thief, ada, "it is me")
    assert await texts(thief, "LATEST spark-ada * 10") == ["it is me"]


async def test_who_takes_a_nick_by_renaming_reads_nothing_from_before(here: Room) -> None:
    """Being here for longer than whoever had it gives no right to it."""
    thief = await here.join("spark-eve")
    ori = await here.join("spark-ori")
    ada = await here.join("spark-ada")
    await chat(here, ori, ada, "hello", "hi")
    await ori.ask("NICK spark-moved")
    here.clock.now += 1
    await thief.ask("NICK spark-ori")
    assert await texts(thief, "LATEST spark-ada * 10") == []
    assert await targets(thief) == []
    await thief.ask("NICK Spark-Ori")
    assert await texts(thief, "LATEST spark-ada * 10") == []
    await leave(thief)
    here.clock.now += 1
    await ori.ask("NICK spark-ori")
    assert await texts(ori, "LATEST spark-ada * 10") == []


async def test_a_guest_reads_nothing_of_the_account_of_that_name(here: Room) -> None:
    ori = await here.join("spark-ori", account="ori")
    ada = await here.join("spark-ada", account="ada")
    await chat(here, ori, ada, "hello", "hi")
    await ori.ask("NICK spark-captain")
    here.clock.now += 1
    guest = await here.join("spark-ori")
    assert await texts(guest, "LATEST spark-ada * 10") == []
    assert await texts(ada, "LATEST spark-ori * 10") == []
    assert await texts(ada, "LATEST spark-captain * 10") == ["hello", "hi"]


async def test_a_clock_that_is_set_back_shows_nobody_what_others_said(here: Room) -> None:
    ori = await here.join("spark-ori")
    ada = await here.join("spark-ada")
    await chat(here, ori, ada, "hello", "hi")
    await leave(ori)
    here.clock.now -= 1_000
    thief = await here.join("spark-ori")
    assert await texts(thief, "LATEST spark-ada * 10") == []


async def test_of_two_who_had_a_nick_the_account_is_meant_when_nobody_is_there(tmp_path: Path) -> None:
    accounts_of(tmp_path, "ori", "ada")
    async with room(tmp_path) as here:
        ori = await here.join("spark-ori", account="ori")
        ada = await here.join("spark-ada", account="ada")
        await chat(here, ori, ada, "hello")
        await ada.ask("NICK spark-other")
        assert here.ircd.parts.network.user("spark-ada") is None
        assert await texts(ori, "LATEST spark-ada * 10") == ["hello"]


async def test_targets_name_nicks_that_can_be_asked_for(tmp_path: Path) -> None:
    """Somebody who talked under another nick, and is gone, is named by one that is the account's own."""
    accounts_of(tmp_path, "ori", "ada")
    async with room(tmp_path) as here:
        ori = await here.join("spark-ori", account="ori")
        ada = await here.join("spark-ada", account="ada")
        await ada.ask("NICK spark-other")
        ada.nick = "spark-other"
        await chat(here, ori, ada, "hello")
        assert await targets(ori) == ["spark-other"]
        await leave(ada)
    async with room(tmp_path) as here:
        here.clock.now += 1_000
        ori = await here.join("spark-ori", account="ori")
        assert await targets(ori) == ["spark-ada"]
        assert await texts(ori, "LATEST spark-ada * 10") == ["hello"]
        guest = await here.join("spark-other")
        await chat(here, ori, guest, "who are you?")
        assert await targets(ori) == ["spark-ada", "spark-other"]


async def test_private_events_are_private_too(here: Room) -> None:
    ori = await here.join("spark-ori", caps=f"{EVENTS} draft/message-redaction")
    ada = await here.join("spark-ada", caps=f"{EVENTS} draft/message-redaction")
    eve = await here.join("spark-eve", caps=EVENTS)
    [wrong] = await chat(here, ori, ada, "wrong")
    await ori.ask("@+draft/react=x TAGMSG spark-ada")
    await ori.ask(f"REDACT spark-ada {wrong.tags['msgid']}")
    for client, other in ((ori, "spark-ada"), (ada, "spark-ori")):
        assert [row.verb for row in await history(client, f"LATEST {other} * 10")] == ["TAGMSG", "REDACT"]
    for other in ("spark-ori", "spark-ada"):
        assert await history(eve, f"LATEST {other} * 10") == []


async def test_a_channel_that_takes_a_name_inherits_no_secrets_of_it(tmp_path: Path) -> None:
    """What was said behind closed doors under the name was another channel's, also after a restart."""
    async with serving(tmp_path) as ircd, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#vault")
        await ori.ask("MODE #vault +s")
        await ori.ask("PRIVMSG #vault :the treasure is under the oak")
        await ori.ask("PART #vault")
        async with registered(ircd.port, "spark-eve", "draft/channel-rename") as eve:
            await eve.join("#mine")
            await eve.ask("MODE #mine +i")
            await eve.ask("PRIVMSG #mine :my own secret")
            await eve.ask("RENAME #mine #vault :nicer")
            rows = await eve.ask("HISTORY RECENT #vault 10")
            assert [row.params[-1] for row in rows[:-1]] == ["my own secret"]
            assert [row.verb for row in await eve.ask("HISTORY SEARCH #vault treasure")] == ["HISTORYEND"]
    async with serving(tmp_path) as ircd, registered(ircd.port, "spark-eve") as eve:
        await eve.join("#vault")
        assert [row.verb for row in await eve.ask("HISTORY RECENT #vault 10")] == ["HISTORYEND"]


# What is not for everybody, by roads around


async def test_a_clock_that_is_set_back_opens_no_closed_doors(here: Room) -> None:
    """What was said then is later than the channel made anew, and yet from before it."""
    ori = await here.join("spark-ori", "#a")
    await here.say(ori, "#a", "open")
    await ori.ask("MODE #a +s")
    await here.say(ori, "#a", "secret")
    await ori.ask("PART #a")
    here.clock.now -= 1_000
    eve = await here.join("spark-eve", "#a")
    assert await told(eve) == ["open"]
    assert await texts(eve, "LATEST #a * 10") == ["open"]
    assert await targets(eve) == []
    await eve.ask("MODE #a +s")
    await here.say(eve, "#a", "mine")
    assert await told(eve) == ["mine", "open"]
    plain = await here.join("spark-ada", caps="server-time")
    await eve.ask("INVITE spark-ada #a")
    plain.send("JOIN #a")
    assert (await plain.expect("PRIVMSG")).params[-1] == "mine"
    assert "secret" not in str(await plain.sync())


async def test_another_server_makes_no_channel_older_than_it_is(here: Room) -> None:
    """It may say so when servers are linked; what was closed before is still not for who came since."""
    ori = await here.join("spark-ori", "#a")
    await ori.ask("MODE #a +s")
    await here.say(ori, "#a", "secret")
    made = here.ircd.parts.network.channels["#a"].created
    await ori.ask("PART #a")
    here.clock.now += 1
    eve = await here.join("spark-eve", "#a")
    here.ircd.parts.network.channels["#a"].created = made
    assert await told(eve) == []
    assert await texts(eve, "LATEST #a * 10") == []


async def test_channels_that_are_no_more_are_forgotten(here: Room) -> None:
    ori = await here.join("spark-ori")
    for number in range(400):
        ori.send(f"JOIN #n{number}")
        ori.send(f"PART #n{number}")
    await ori.sync()
    skill = here.ircd.parts.skills.get("history")
    assert skill is not None
    [access] = [place for place in skill.places() if isinstance(place, Access)]
    assert len(access._since) < 150


async def test_operators_of_a_channel_made_anew_inherit_no_words_for_operators(here: Room) -> None:
    """They were for the operators of another channel, though anybody could come into that one."""
    ori = await here.join("spark-ori", "#a")
    await here.say(ori, "#a", "to all")
    await here.say(ori, "@#a", "to operators")
    ada = await here.join("spark-ada", "#a")
    await ori.ask("MODE #a +o spark-ada")
    assert await texts(ada, "LATEST #a * 10") == ["to all", "to operators"]
    await ada.ask("PART #a")
    await ori.ask("PART #a")
    here.clock.now += 1
    eve = await here.join("spark-eve", "#a", caps=EVENTS)
    assert "to operators" not in await texts(eve, "LATEST #a * 10")
    assert await told(eve) == ["to all"]
    assert [row.verb for row in await eve.ask("HISTORY SEARCH #a :operators")] == ["HISTORYEND"]


async def test_nobody_learns_by_its_id_that_a_message_is_there(here: Room) -> None:
    """Ids can be guessed: neither strangers nor members of a lower rank find out where one was said."""
    ori = await here.join("spark-ori", "#a")
    await ori.ask("MODE #a +s")
    [secret] = await here.say(ori, "#a", "behind closed doors")
    await ori.ask("MODE #a -s")
    [for_few] = await here.say(ori, "@#a", "to operators")
    [shown] = await here.say(ori, "#a", "in the open")
    eve = await here.join("spark-eve")
    for hidden in (secret, for_few):
        [answer] = await eve.ask(f"HISTORY SINCE #a {hidden.tags['msgid']}")
        assert answer.params[:2] == ("HISTORY", "UNKNOWN_MSGID")
    assert [row.verb for row in await eve.ask(f"HISTORY SINCE #a {shown.tags['msgid']}")] == ["HISTORYEND"]
    await eve.join("#a")
    assert (await failure(eve, f"AFTER #a msgid={for_few.tags['msgid']} 10"))[0] == "MESSAGE_ERROR"
    assert await texts(eve, f"AFTER #a msgid={secret.tags['msgid']} 10") == ["in the open"]


async def test_what_was_taken_back_is_counted_from_by_strangers_too(here: Room) -> None:
    ori = await here.join("spark-ori", "#a", caps=f"{CAPS} draft/message-redaction")
    [wrong] = await here.say(ori, "#a", "wrong")
    await here.say(ori, "#a", "right")
    await ori.ask(f"REDACT #a {wrong.tags['msgid']}")
    eve = await here.join("spark-eve")
    rows = await eve.ask(f"HISTORY SINCE #a {wrong.tags['msgid']}")
    assert [row.params[-1] for row in rows[:-1]] == ["right"]


@pytest.mark.parametrize("who", ["spark-ori", "spark-ada"])
async def test_what_a_guest_said_is_taken_back_after_a_login_too(tmp_path: Path, who: str) -> None:
    """Whatever the two are to the history by then: nothing is left of it, for whoever reads under either name."""
    caps = f"{CAPS} draft/message-redaction"
    async with room(tmp_path) as here:
        ori, ada = await here.join("spark-ori", caps=caps), await here.join("spark-ada", caps=caps)
        [wrong] = await here.say(ori, "spark-ada", "the password is swordfish")
        router, user = here.ircd.parts.router, here.ircd.parts.network.user(who)
        assert user is not None
        with here.ircd.parts.turn():
            router.publish(AccountSet(router.ids.stamp(), user.source, "somebody", "human"))
        assert [row.verb for row in await ori.ask(f"REDACT spark-ada {wrong.tags['msgid']}")] == ["REDACT"]
        await ada.expect("REDACT")
    store = SQLiteStore(tmp_path / "data" / "history" / "history.db")
    store.open()
    assert all("swordfish" not in each.entry.text for each in store.everything())
    store.close()
