"""weechat and irssi in channels: topic, modes, bans, kicks, invitations, the list."""

import pytest

from tests.realclients.people import GENERAL, TEXT, Pair


@pytest.mark.requirement("A32")
async def test_a_topic_is_shown_to_members_and_to_whoever_joins(pair: Pair) -> None:
    """RFC 2812 §3.2.4"""
    wendy, iris = pair
    wendy.type(f"/topic {TEXT}", GENERAL)
    await wendy.shows(f'spark-wendy has changed topic for #general to "{TEXT}"', GENERAL)
    await iris.shows(f"spark-wendy changed the topic of #general to: {TEXT}$")
    await iris.has_on_screen(f"changed the topic of #general to: {TEXT}")
    await iris.type("/topic mine")
    await iris.shows("#general You're not channel operator")
    await iris.type("/cycle")
    await iris.shows(f"Topic for #general: {TEXT}$")
    await iris.shows("Topic set by spark-wendy")


@pytest.mark.requirement("A32")
async def test_voice_and_operator_are_given_and_shown(pair: Pair) -> None:
    """RFC 2812 §3.2.3, §4.2: voice speaks in a moderated channel, an operator rules it; both stand before the nick."""
    wendy, iris = pair
    wendy.type("/mode +m", GENERAL)
    await iris.shows(r"mode/#general \[\+m\] by spark-wendy")
    await iris.type("may I?")
    await iris.shows("Cannot send to (nick/)?channel")
    wendy.type("/voice spark-iris", GENERAL)
    await iris.shows(r"mode/#general \[\+v spark-iris\] by spark-wendy")
    await wendy.shows(r"Mode #general \[\+v spark-iris\] by spark-wendy", GENERAL)
    await iris.type("with a voice")
    await wendy.shows(r"^\+spark-iris with a voice$", GENERAL)
    assert await wendy.count("may I", GENERAL) == 0
    wendy.type("/op spark-iris", GENERAL)
    await iris.shows(r"mode/#general \[\+o spark-iris\] by spark-wendy")
    await iris.type("/mode #general -m+l 10")
    await wendy.shows(r"Mode #general \[-m\+l 10\] by spark-iris", GENERAL)
    await iris.type("/deop spark-wendy")
    await wendy.shows(r"Mode #general \[-o spark-wendy\] by spark-iris", GENERAL)
    wendy.type("/names", GENERAL)
    await wendy.shows(r"Nicks #general: \[@spark-iris spark-wendy\]", GENERAL)
    await iris.type("/mode #general")
    await iris.shows(r"mode/#general \[\+[lnt]{3} 10\]")


@pytest.mark.requirement("A32")
async def test_a_ban_keeps_somebody_out(pair: Pair) -> None:
    """RFC 2812 §4.3.1"""
    wendy, iris = pair
    wendy.type("/ban spark-iris!*@*", GENERAL)
    await iris.shows(r"mode/#general \[\+b spark-iris!\*@\*\] by spark-wendy")
    wendy.type("/ban", GENERAL)
    await wendy.shows(r"\[#general\] \[1\] spark-iris!\*@\* banned by spark-wendy", GENERAL)
    await iris.type("/cycle")
    await iris.shows(r"Cannot join to channel #general \(You are banned\)")
    wendy.type("/unban spark-iris!*@*", GENERAL)
    await wendy.shows(r"Mode #general \[-b spark-iris!\*@\*\]", GENERAL)
    await iris.type("/join #general")
    await wendy.shows(r"spark-iris \(.*\) has joined #general", GENERAL)


@pytest.mark.requirement("A32")
async def test_a_kick_is_seen_with_its_reason(pair: Pair) -> None:
    """RFC 2812 §3.2.8"""
    wendy, iris = pair
    await iris.type("/kick spark-wendy mutiny")
    await iris.shows("#general You're not channel operator")
    wendy.type(f"/kick spark-iris {TEXT}", GENERAL)
    await wendy.shows(rf"spark-wendy has kicked spark-iris \({TEXT}\)", GENERAL)
    await iris.shows(rf"spark-iris was kicked from #general by spark-wendy \[{TEXT}\]")
    await iris.type("/join #general")
    await wendy.shows(r"spark-iris \(.*\) has joined #general", GENERAL)


@pytest.mark.requirement("A32")
async def test_an_invitation_opens_a_closed_channel(pair: Pair) -> None:
    """RFC 2812 §3.2.7"""
    wendy, iris = pair
    wendy.type("/join #den")
    await wendy.shows("Channel #den: 1 nick", "#den")
    wendy.type("/mode +i", "#den")
    await wendy.shows(r"Mode #den \[\+i\]", "#den")
    await iris.type("/join #den")
    await iris.shows(r"Cannot join to channel #den \(You must be invited\)")
    wendy.type("/invite spark-iris", "#den")
    await iris.shows("spark-wendy invites you to #den")
    await iris.type("/join #den")
    await wendy.shows(r"spark-iris \(.*\) has joined #den", "#den")


@pytest.mark.requirement("A32")
async def test_the_list_shows_channels_with_members_and_topic(pair: Pair) -> None:
    """RFC 2812 §3.2.6"""
    wendy, iris = pair
    await iris.type("/join #tea")
    await iris.shows("#tea: Total of 1 nicks")
    await iris.type(f"/topic {TEXT}")
    await iris.shows("changed the topic of #tea")
    wendy.type("/list")
    await wendy.shows(rf"#tea\(1\): {TEXT}$")
    await iris.type("/list")
    await iris.shows("#general 2")
    await iris.shows("End of /?LIST")
