"""What each mode of a channel does, and the lists of masks."""

import pytest

from culture.protocol.stream import LINE_LIMIT
from tests.server.conftest import Crowd
from tests.server.rooms import codes, lines, modes_of, room_of
from tests.support.client import registered
from tests.support.servers import Serve


@pytest.mark.requirement("C08")
async def test_a_key_opens_the_channel(crowd: Crowd) -> None:
    """RFC 2811 §4.2.10"""
    ori, ada = await room_of(crowd, "ada")
    assert lines(await ori.ask("MODE #room +k beer")) == [("MODE", "#room", "+k", "beer")]
    assert lines(await ada.sync()) == [("MODE", "#room", "+k", "beer")]
    eve = await crowd.join("spark-eve")
    assert codes(await eve.join("#room")) == ["475"]
    assert codes(await eve.join("#room bees")) == ["475"]
    assert codes(await eve.join("#room beer"))[0] == "JOIN"
    assert lines(await ori.ask("MODE #room -k"))[-1] == ("MODE", "#room", "-k", "*")
    bob = await crowd.join("spark-bob")
    assert codes(await bob.join("#room"))[0] == "JOIN"


@pytest.mark.requirement("C08")
@pytest.mark.parametrize("key", ["with spaces", "", " ", "long" * 100, "a,b", ":colon", "é", "tab\there", "x" * 24])
async def test_a_key_that_could_not_be_given_is_refused(crowd: Crowd, key: str) -> None:
    """RFC 2812 §2.3.1"""
    (ori,) = await room_of(crowd)
    (refused,) = lines(await ori.ask(f"MODE #room +k :{key}"))
    assert refused[:5] == ("696", "spark-ori", "#room", "k", "*")
    assert await modes_of(ori) == ("+nt",)


@pytest.mark.requirement("C08")
async def test_a_limit_keeps_later_ones_out(crowd: Crowd) -> None:
    """RFC 2811 §4.2.9"""
    ori, ada = await room_of(crowd, "ada")
    assert lines(await ori.ask("MODE #room +l 1")) == [("MODE", "#room", "+l", "1")]
    eve = await crowd.join("spark-eve")
    assert codes(await eve.join("#room")) == ["471"]
    await ada.ask("PRIVMSG #room :still here")
    assert codes(await ori.ask("MODE #room +l 3")) == ["PRIVMSG", "MODE"]
    assert codes(await eve.join("#room"))[0] == "JOIN"
    assert lines(await ori.ask("MODE #room -l"))[-1] == ("MODE", "#room", "-l")


@pytest.mark.parametrize("limit", ["0", "-1", "abc", "", " ", "٣", "9" * 10, "9" * 400])
async def test_a_limit_is_a_number_above_zero(crowd: Crowd, limit: str) -> None:
    (ori,) = await room_of(crowd)
    (refused,) = lines(await ori.ask(f"MODE #room +l :{limit}"))
    assert refused[:4] == ("696", "spark-ori", "#room", "l")
    assert await modes_of(ori) == ("+nt",)


@pytest.mark.requirement("C08")
async def test_a_ban_keeps_out_and_silent_and_an_exception_lifts_it(crowd: Crowd) -> None:
    """RFC 2811 §4.3.1, §4.3.2; masks compare without case"""
    ori, ada = await room_of(crowd, "ada")
    eve = await crowd.join("spark-Eve")
    assert lines(await ori.ask("MODE #room +b SPARK-eve")) == [("MODE", "#room", "+b", "SPARK-eve!*@*")]
    await ori.ask("MODE #room +b spark-ad?")
    assert codes(await eve.join("#room")) == ["474"]
    assert codes(await ada.ask("PRIVMSG #room :hello"))[-1] == "404"
    await ori.ask("MODE #room +e *!*@127.0.0.1")
    assert codes(await eve.join("#room"))[0] == "JOIN"
    assert await eve.ask("PRIVMSG #room :hello") == []
    assert lines(await ori.ask("MODE #room -b spark-eve"))[-1] == ("MODE", "#room", "-b", "SPARK-eve!*@*")


@pytest.mark.requirement("C08")
async def test_a_mute_lets_in_and_keeps_silent(crowd: Crowd) -> None:
    """EXTBAN=,m: a voice or an exception lifts it"""
    (ori,) = await room_of(crowd)
    eve = await crowd.join("spark-eve")
    assert lines(await ori.ask("MODE #room +b m:spark-eve!*@*")) == [("MODE", "#room", "+b", "m:spark-eve!*@*")]
    assert codes(await eve.join("#room"))[0] == "JOIN"
    assert codes(await eve.ask("PRIVMSG #room :hello")) == ["404"]
    assert await eve.ask("NOTICE #room :hello") == []
    assert codes(await ori.sync()) == ["JOIN"]
    await ori.ask("MODE #room +v spark-eve")
    assert codes(await eve.ask("PRIVMSG #room :with a voice")) == ["MODE"]
    await ori.ask("MODE #room -v+e spark-eve m:*!*tester@*")
    assert codes(await eve.ask("PRIVMSG #room :by exception")) == ["MODE"]
    await ori.ask("MODE #room -e m:*!*tester@*")
    assert codes(await eve.ask("PRIVMSG #room :and now?")) == ["MODE", "404"]
    await ori.ask("MODE #room -b m:spark-EVE")
    assert codes(await eve.ask("PRIVMSG #room :and now?")) == ["MODE"]


@pytest.mark.requirement("C08")
async def test_an_invitation_mask_opens_an_invite_only_channel(crowd: Crowd) -> None:
    """RFC 2811 §4.2.2, §4.3.2"""
    (ori,) = await room_of(crowd)
    eve = await crowd.join("spark-eve")
    await ori.ask("MODE #room +i")
    assert codes(await eve.join("#room")) == ["473"]
    assert lines(await ori.ask("MODE #room +I spark-eve")) == [("MODE", "#room", "+I", "spark-eve!*@*")]
    assert codes(await eve.join("#room"))[0] == "JOIN"


@pytest.mark.requirement("C08")
async def test_without_n_outsiders_may_speak(crowd: Crowd) -> None:
    """RFC 2811 §4.2.4"""
    (ori,) = await room_of(crowd)
    eve = await crowd.join("spark-eve")
    assert codes(await eve.ask("PRIVMSG #room :knock")) == ["404"]
    await ori.ask("MODE #room -n")
    assert await eve.ask("PRIVMSG #room :knock") == []
    assert lines(await ori.sync()) == [("PRIVMSG", "#room", "knock")]
    await ori.ask("MODE #room +b spark-eve")
    assert codes(await eve.ask("PRIVMSG #room :knock")) == ["404"]


@pytest.mark.requirement("C08")
async def test_without_t_members_set_the_topic(crowd: Crowd) -> None:
    """RFC 2811 §4.2.8"""
    ori, ada = await room_of(crowd, "ada")
    assert codes(await ada.ask("TOPIC #room :mine")) == ["482"]
    await ori.ask("MODE #room -t")
    assert codes(await ada.ask("TOPIC #room :mine")) == ["MODE", "TOPIC"]


@pytest.mark.requirement("C08")
async def test_a_secret_channel_tells_outsiders_nothing(crowd: Crowd) -> None:
    """RFC 2811 §4.2.6"""
    (ori,) = await room_of(crowd)
    eve = await crowd.join("spark-eve")
    await ori.ask("MODE #room +sb hidden")
    for line in ("MODE #room", "MODE #room b", "MODE #room +m"):
        assert codes(await eve.ask(line)) == ["442"], line
    assert codes(await eve.ask("NAMES #room")) == ["366"]


@pytest.mark.requirement("C08")
async def test_a_channel_without_ctcp_still_takes_actions(crowd: Crowd) -> None:
    """+C"""
    ori, ada = await room_of(crowd, "ada")
    assert await ada.ask("PRIVMSG #room :\x01VERSION\x01") == []
    await ori.ask("MODE #room +C")
    assert codes(await ada.ask("PRIVMSG #room :\x01VERSION\x01"))[1:] == ["404"]
    assert await ada.ask("PRIVMSG #room :\x01ACTION waves\x01") == []


# Lists


@pytest.mark.requirement("B16")
@pytest.mark.parametrize(("mode", "row", "end"), [("b", "367", "368"), ("e", "348", "349"), ("I", "346", "347")])
async def test_members_can_see_the_lists(crowd: Crowd, mode: str, row: str, end: str) -> None:
    """RFC 2812 §3.2.3"""
    ori, ada = await room_of(crowd, "ada")
    await ori.ask(f"MODE #room +{mode}{mode} one user@host")
    await ada.sync()
    for query in (mode, f"+{mode}", f"-{mode}", f"+{mode} :"):
        first, second, last = lines(await ada.ask(f"MODE #room {query}"))
        assert first[:4] == (row, "spark-ada", "#room", "one!*@*")
        assert first[4].startswith("spark-ori!")
        assert first[5].isdigit()
        assert second[3] == "*!user@host"
        assert last[:3] == (end, "spark-ada", "#room")
    assert codes(await ori.ask(f"MODE #room -{mode}+{mode} one")) == ["MODE", row, end]


async def test_a_list_asked_for_many_times_comes_once(crowd: Crowd) -> None:
    (ori,) = await room_of(crowd)
    assert codes(await ori.ask("MODE #room +beIbeIbeI")) == ["368", "349", "347"]


async def test_a_list_under_a_label_is_one_batch(crowd: Crowd) -> None:
    """IRCv3 labeled-response"""
    ori = await crowd.join("spark-ori", "#room", caps="batch labeled-response")
    await ori.ask("MODE #room +b one")
    answer = await ori.ask("@label=x MODE #room +ib")
    assert codes(answer) == ["BATCH", "MODE", "367", "368", "BATCH"]


async def test_the_lists_have_room_for_so_many_masks(serve: Serve) -> None:
    """005 MAXLIST: of all three kinds together; 478"""
    async with serve(limits={"list_entries": 3}) as ircd, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#room")
        full = lines(await ori.ask("MODE #room +beIb a b c d"))
        assert full[0][:4] == ("478", "spark-ori", "#room", "b")
        assert full[1] == ("MODE", "#room", "+beI", "a!*@*", "b!*@*", "c!*@*")
        assert codes(await ori.ask("MODE #room +b a")) == []
        assert lines(await ori.ask("MODE #room -e+b b d")) == [("MODE", "#room", "-e+b", "b!*@*", "d!*@*")]


@pytest.mark.parametrize("mask", ["with space", ":colon", "m:", "m::", "x" * 450, "é" * 230])
async def test_a_mask_that_no_line_could_show_is_refused(crowd: Crowd, mask: str) -> None:
    (ori,) = await room_of(crowd)
    (answer,) = lines(await ori.ask(f"MODE #room +b :{mask}"))
    if mask == "m::":
        assert answer == ("MODE", "#room", "+b", "m::!*@*")
    else:
        assert answer[:4] == ("696", "spark-ori", "#room", "b")


async def test_the_longest_mask_fits_into_the_list(serve: Serve) -> None:
    """RFC 2812 §2.3, with the longest names there can be"""
    name = f"{'s' * 12}.{'x' * 50}"
    async with serve(name=name) as ircd, registered(ircd.port, f"{'s' * 12}-{'o' * 19}") as ori:
        channel = "#" + "c" * 63
        await ori.join(channel)
        longest = 400
        while codes(await ori.ask(f"MODE {channel} +b {'m' * longest}")) == ["696"]:
            longest -= 1
        ori.send(f"MODE {channel} +b")
        raw = await ori.line()
        assert len(raw) <= LINE_LIMIT
        assert raw.split(b" ")[4] == b"m" * longest + b"!*@*"
        assert raw.rstrip().split(b" ")[-1].isdigit()
