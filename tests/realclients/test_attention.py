"""weechat and irssi learn who somebody is, who is away, and that somebody calls them."""

import pytest

from culture.server.ircd import IRCd
from tests.realclients.people import GENERAL, TEXT, Pair
from tests.realclients.weechat import CORE
from tests.support.client import registered


@pytest.mark.requirement("A32")
async def test_who_is_away_is_told_to_whoever_asks_or_writes(pair: Pair) -> None:
    """RFC 2812 §4.1"""
    wendy, iris = pair
    wendy.type(f"/away {TEXT}", GENERAL)
    await wendy.shows("You have been marked as being away")
    await iris.type("/msg spark-wendy there?")
    await iris.shows(f"spark-wendy is away: {TEXT}$")
    await wendy.shows("^spark-iris there\\?$", "spark-iris")
    await iris.type("/whois spark-wendy")
    await iris.shows(rf"away\s+: {TEXT}$")
    wendy.type("/away", GENERAL)
    await wendy.shows("You are no longer marked as being away")
    await iris.type("/away tea")
    await iris.shows("You have been marked as being away")
    wendy.type("/whois spark-iris", GENERAL)
    await wendy.shows(r"\[spark-iris\] is away: tea", "spark-iris")
    await iris.type("/away")
    await iris.shows("You are no longer marked as being away")


@pytest.mark.requirement("A32")
async def test_whois_says_who_somebody_is(pair: Pair) -> None:
    """RFC 2812 §3.6.2"""
    wendy, iris = pair
    wendy.type("/whois spark-iris", GENERAL)
    await wendy.shows(r"\[spark-iris\] \(~.*@127\.0\.0\.1\)")
    await wendy.shows(r"\[spark-iris\] End of /?WHOIS")
    assert await wendy.count(r"\[spark-iris\] #general") == 1
    assert await wendy.count(r"\[spark-iris\] spark \(culture IRC server\)") == 1
    await iris.type("/whois spark-wendy")
    await iris.shows(r"spark-wendy \[~.*@127\.0\.0\.1\]")
    await iris.shows(r"channels\s+: @#general")
    await iris.shows("End of WHOIS")
    await iris.type("/whois spark-nobody")
    await iris.shows("There is no such nick spark-nobody")


@pytest.mark.requirement("A32", "C02", "C07")
async def test_a_mention_is_flagged_once_to_a_plain_client(pair: Pair) -> None:
    """C02, C07, decision 5: neither client asks for the tag, so each gets one notice from the server."""
    wendy, iris = pair
    await iris.type("/nick spark-culture")
    await wendy.shows("now known as spark-culture", GENERAL)
    wendy.type("@spark-culture hello", GENERAL)
    await iris.shows("<@spark-wendy> @spark-culture hello$")
    await iris.shows("^!spark spark-culture: spark-wendy mentioned you in #general: @spark-culture hello$")
    await iris.type("@spark-wendy hello yourself")
    await wendy.shows("^-- spark: spark-wendy: spark-culture mentioned you in #general: @spark-wendy hello yourself$")
    await wendy.shows("^ flagged: .*@spark-wendy hello yourself", CORE)
    await iris.type("no call for wendy, nor by `@spark-wendy` in code")
    await wendy.shows("no call for wendy", GENERAL)
    assert await wendy.count("mentioned you") == 1
    assert iris.count("mentioned you") == 1
    await iris.type("/window 1")
    await iris.has_on_screen("spark-wendy mentioned you in #general: @spark-culture hello")


@pytest.mark.requirement("A11", "A32")
async def test_a_person_and_an_agent_are_told_apart_and_call_each_other(pair: Pair, ircd: IRCd) -> None:
    """A11, decision 2: nicks of one form; the agent says that it is one, the person need not say anything."""
    wendy, iris = pair
    async with registered(ircd.port, "spark-claude", "agentirc.dev/mentions message-tags") as claude:
        await claude.ask("MODE spark-claude +B")
        await claude.join(GENERAL)
        claude.send("PRIVMSG #general :@wendy, iris: shall I?")
        await wendy.shows("spark-claude mentioned you in #general: @wendy, iris: shall I")
        wendy.type("@claude yes", GENERAL)
        said = await claude.expect("PRIVMSG", GENERAL, "@claude yes")
        assert said.tags["agentirc.dev/mentions"] == "spark-claude"
        assert said.tags["agentirc.dev/class"] == "human"
        wendy.type("/whois spark-claude", GENERAL)
        await wendy.shows(r"\[spark-claude\] is a bot")
        await iris.type("/who #general")
        await iris.shows(r"spark-wendy H@\s")
        await iris.shows(r"spark-claude HB\s")
        await iris.shows("End of /WHO")
        assert iris.count("mentioned you") == 0
        wendy.type("/kick spark-claude thanks", GENERAL)
        await claude.expect("KICK", GENERAL, "spark-claude", "thanks")
