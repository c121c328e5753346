"""LIST: finding channels (RFC 2812 §3.2.6, ELIST)."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.config.model import Operator
from culture.protocol.message import Message
from culture.server.core.state import Channel
from culture.server.handlers.channels import ListFilter
from culture.server.ircd import IRCd
from tests.server.conftest import Crowd
from tests.support.client import Client
from tests.support.clock import Clock, ClockedRuntime
from tests.support.servers import Serve, config_for

MINUTE = 60.0


def listed(messages: list[Message]) -> set[str]:
    """The channels of an answer."""
    return {message.params[1] for message in messages if message.verb == "322"}


@pytest.mark.requirement("B15")
async def test_every_channel_with_its_size_and_topic(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#Room")
    await crowd.join("spark-ada", "#room")
    await ori.ask("TOPIC #room :what we do")
    got = await ori.ask("LIST")
    assert [(message.verb, *message.params) for message in got] == [
        ("321", "spark-ori", "Channel", "Users  Name"),
        ("322", "spark-ori", "#general", "0", ""),
        ("322", "spark-ori", "#Room", "2", "what we do"),
        ("323", "spark-ori", "End of LIST"),
    ]


@pytest.mark.requirement("B15")
async def test_a_secret_channel_is_listed_to_members_and_operators_only(serve: Serve) -> None:
    root = Operator(name="root", password="secret")
    async with serve(operators=(root,), channels=()) as ircd, AsyncExitStack() as stack:
        crowd = Crowd(ircd, stack)
        ada = await crowd.join("spark-ada", "#hidden")
        await ada.ask("MODE #hidden +s")
        ori = await crowd.join("spark-ori")
        for line in ("LIST", "LIST #hidden", "LIST *h*", "LIST >0"):
            assert listed(await ori.ask(line)) == set(), line
            assert listed(await ada.ask(line)) == {"#hidden"}, line
        await ori.ask("OPER root secret")
        assert listed(await ori.ask("LIST")) == {"#hidden"}


async def test_by_name_and_mask(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#chan1", "#chan2", "#other")
    cases = {
        "#chan1": {"#chan1"},
        "#CHAN1,#chan2,#chan1": {"#chan1", "#chan2"},
        "#chan1,*ther": {"#chan1", "#other"},
        "*AN?": {"#chan1", "#chan2"},
        "!*an*": {"#general", "#other"},
        "#ch*,!*2": {"#chan1"},
        "#ch*,#o*,!*2": {"#chan1", "#other"},
        "#nowhere": set(),
        "nonsense": set(),
        ",,": {"#general", "#chan1", "#chan2", "#other"},
    }
    for words, wanted in cases.items():
        got = await ori.ask(f"LIST {words}")
        assert listed(got) == wanted, words
        assert got[-1].verb == "323"


async def test_by_number_of_members(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#one", "#two")
    await crowd.join("spark-ada", "#two")
    await ori.sync()
    assert listed(await ori.ask("LIST >1")) == {"#two"}
    assert listed(await ori.ask("LIST <1")) == {"#general"}
    assert listed(await ori.ask("LIST >0,<2")) == {"#one"}
    assert listed(await ori.ask("LIST #t* >0")) == {"#two"}
    assert listed(await ori.ask("LIST >99999999999999999999")) == set()


class Ages(NamedTuple):
    ori: Client
    clock: Clock


@pytest.fixture
async def ages(tmp_path: Path) -> AsyncIterator[Ages]:
    """A client of a server whose clock the test moves."""
    clock = Clock()
    async with (
        IRCd(config_for(tmp_path, channels=()), runtime=ClockedRuntime(clock)).running() as ircd,
        AsyncExitStack() as stack,
    ):
        yield Ages(await Crowd(ircd, stack).join("spark-ori"), clock)


async def test_by_age(ages: Ages) -> None:
    """C>n: made more than n minutes ago."""
    await ages.ori.join("#old")
    ages.clock.now += 2.5 * MINUTE
    await ages.ori.join("#new")
    ages.clock.now += 1 * MINUTE
    for words, wanted in {"C>2": {"#old"}, "c<2": {"#new"}, "C<0": set(), "C>0,C<3": {"#new"}}.items():
        assert listed(await ages.ori.ask(f"LIST {words}")) == wanted, words


async def test_by_age_of_the_topic(ages: Ages) -> None:
    """T<n: set less than n minutes ago; without a topic never."""
    for name in ("#old", "#new", "#none"):
        await ages.ori.join(name)
    await ages.ori.ask("TOPIC #old :first")
    ages.clock.now += 2.5 * MINUTE
    await ages.ori.ask("TOPIC #new :second")
    ages.clock.now += 1 * MINUTE
    for words, wanted in {"T>2": {"#old"}, "t<2": {"#new"}, "T<0": set(), "T<10": {"#old", "#new"}}.items():
        assert listed(await ages.ori.ask(f"LIST {words}")) == wanted, words


@given(st.lists(st.text()), st.text(min_size=1))
def test_any_words_make_a_filter(words: list[str], name: str) -> None:
    wanted = ListFilter.parse(words)
    assert len(wanted.masks) + len(wanted.without) + len(wanted.conditions) == len([word for word in words if word])
    assert wanted.fits(Channel("#" + name, 0.0), 0.0) in (True, False)
