"""Too much at once: slowed down, counted, turned away; never at the cost of others."""

from contextlib import AsyncExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.config.model import Flood, Rate, ServerLimits
from culture.lib.ratelimit import TokenBucket
from culture.server.net.connection_limits import AddressLimits
from tests.support.client import connected, registered
from tests.support.servers import Serve


def verbs(messages: list) -> list[str]:
    return [message.verb for message in messages]


@pytest.mark.fault("B4")
@pytest.mark.requirement("A30")
def test_five_at_once_then_two_per_second_on_a_clock() -> None:
    """B4: the defaults, for a client from elsewhere."""
    allowed = Flood().clients
    bucket = TokenBucket(0.0)
    assert bucket.take(8, allowed, 0.0) == 5
    assert bucket.wait(allowed, 0.0) == 0.5
    assert bucket.take(3, allowed, 0.4) == 0
    assert bucket.take(3, allowed, 0.5) == 1
    assert bucket.take(9, allowed, 1.5) == 2
    assert bucket.take(9, allowed, 1000.0) == 5


@pytest.mark.fault("B4")
def test_agents_and_those_on_this_machine_have_wider_classes_that_end_somewhere() -> None:
    """B4: measured, not unlimited."""
    flood = Flood()
    for wider in (flood.agents, flood.loopback):
        assert wider.burst > flood.clients.burst
        assert wider.rate > flood.clients.rate > 0
        assert TokenBucket(0.0).take(10_000, wider, 0.0) == wider.burst


@given(
    st.integers(1, 20),
    st.floats(0.1, 50),
    st.lists(st.tuples(st.floats(0, 5), st.integers(0, 30)), max_size=50),
)
def test_never_more_than_the_burst_and_the_rate_allow(burst: int, rate: float, asked: list[tuple[float, int]]) -> None:
    allowed, bucket, now, granted = Rate(burst=burst, rate=rate), TokenBucket(0.0), 0.0, 0
    for pause, commands in asked:
        now += pause
        granted += bucket.take(commands, allowed, now)
        assert granted <= burst + now * rate + 1e-6


@pytest.mark.fault("B4")
@pytest.mark.requirement("A30")
async def test_a_flood_is_slowed_down_in_order_and_nobody_else_is(serve: Serve) -> None:
    """B4: nothing is lost, nobody is cut off, the others go on."""
    slow = Flood(loopback=Rate(burst=5, rate=20.0))
    async with serve(flood=slow) as ircd, registered(ircd.port, "spark-flood") as flood:
        for number in range(10):
            flood.send(f"PRIVMSG spark-flood :{number}")
        async with registered(ircd.port, "spark-ori") as ori:
            # ori comes in and is answered while the ten still trickle.
            assert await ori.ask("MODE spark-ori") != []
            assert sum(each.verb == "PRIVMSG" for each in flood.seen) < 10
        await flood.expect("PRIVMSG", "spark-flood", "9")
        assert [each.params[1] for each in flood.seen if each.verb == "PRIVMSG"] == [str(n) for n in range(10)]


@pytest.mark.fault("B5")
async def test_the_17th_connection_of_an_address_is_refused(serve: Serve) -> None:
    """B5; loopback counts here because nothing is exempt."""
    async with serve(exempt=()) as ircd, AsyncExitStack() as stack:
        inside = [await stack.enter_async_context(connected(ircd.port)) for _ in range(16)]
        await inside[0].register("spark-first")
        async with connected(ircd.port) as one_more:
            [refusal] = await one_more.ended()
            assert (refusal.verb, "Too many connections" in refusal.params[-1]) == ("ERROR", True)
        inside[1].send("QUIT")
        await inside[1].ended()
        async with registered(ircd.port, "spark-next") as following:
            assert await following.sync() == []
        assert await inside[0].sync() == []


@pytest.mark.fault("B5")
async def test_loopback_is_exempt_by_default(serve: Serve) -> None:
    """B5"""
    async with serve() as ircd, AsyncExitStack() as stack:
        for number in range(40):
            await stack.enter_async_context(registered(ircd.port, f"spark-c{number}"))


@pytest.mark.fault("B6")
async def test_the_33rd_new_connection_within_ten_minutes_is_refused(serve: Serve) -> None:
    """B6"""
    async with serve(exempt=()) as ircd:
        for _ in range(32):
            async with connected(ircd.port) as client:
                client.send("QUIT")
                assert verbs(await client.ended()) == ["ERROR"]
        async with connected(ircd.port) as one_more:
            [refusal] = await one_more.ended()
            assert "try again later" in refusal.params[-1]


@pytest.mark.fault("B6")
def test_ten_minutes_on_a_clock() -> None:
    """B6: after the period the address may come again, and is forgotten in time."""
    doorman, limits = AddressLimits(), ServerLimits()
    for guest in range(32):
        assert doorman.admit(guest, "192.0.2.1", limits, (), float(guest)) is None
        doorman.release(guest)
    assert doorman.admit(99, "192.0.2.1", limits, (), 599.0) is not None
    assert doorman.admit(98, "192.0.2.2", limits, (), 599.0) is None
    assert doorman.admit(97, "192.0.2.1", limits, (), 600.5) is None
    doorman.forget(limits, 5000.0)
    assert doorman.admit(96, "192.0.2.1", limits, (), 5000.0) is None


def test_an_ipv6_network_counts_as_one_address() -> None:
    doorman, limits = AddressLimits(), ServerLimits(connections_per_address=1)
    assert doorman.admit(1, "2001:db8::1", limits, (), 0.0) is None
    assert doorman.admit(2, "2001:db8::2", limits, (), 0.0) is not None
    assert doorman.admit(3, "2001:db8:0:1::2", limits, (), 0.0) is None
