"""A link line by line: what a peer may say when, and that what it may not costs its own link alone."""

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from culture.config.links import LinkConfig
from culture.federation.link import Link as LinkState
from culture.federation.link import Stage
from culture.protocol.message import Message, ProtocolError
from tests.federation.raw import SECRET, mesh_of, raw_peer
from tests.support.client import registered
from tests.support.fuzz import SAMPLES, garbage, noise
from tests.support.servers import serving

LINKS = (LinkConfig(name="thor", secret=SECRET), LinkConfig(name="odin", secret=SECRET))
VERBS = [
    *SAMPLES,
    *("LINK", "LINKSTATE", "ROSTER", "NJOIN", "ENDROSTER", "CHANNEL", "EOB", "EOBACKFILL", "ACK", "CUSTODY", "WANT"),
    *("GAP", "RESUME", "MEMBERS", "NPART", "UMODE", "CHGHOST", "ACCOUNT", "ERROR"),
]


@pytest.mark.fault("D15")
async def test_unknown_verbs_are_passed_over(tmp_path: Path) -> None:
    async with serving(tmp_path, links=LINKS) as ircd, raw_peer(ircd) as peer:
        await peer.link()
        for line in ("FROBNICATE all :the things", ":thor FUTURE", "@id=thor.x.1;at=1 :thor NEWS #general", "999 x"):
            peer.send(line)
        await peer.answered()
        assert list(mesh_of(ircd).links) == ["thor"]
        assert 'culture_link_unknown_lines_total{peer="thor"} 4\n' in ircd.parts.metrics.text()


@pytest.mark.fault("D15")
@pytest.mark.parametrize(
    "line",
    [
        b":thor ROSTER thor epoch many",
        b":thor ENDROSTER thor",
        b":thor CHANNEL #general yesterday 1 :{}",
        b":thor CHANNEL #general 1 1 :{",
        b":thor LINKSTATE",
        b":thor-bob!u@h PRIVMSG #general :no id",
        b"@id=thor.x.1;at=never :thor-bob!u@h PRIVMSG #general :no time",
        b"@id=thor.x.1;at=1 :thor-bob!u@h MODE #general :[[1,2]]",
        b"@id=thor.x.99;at=1 :thor-bob!u@h JOIN general + :no channel",
        b"@id=thor.x.1;at=1 :thor-bob!u@h PRIVMSG #general :" + b"x" * 5000,
        b"\xff\xfe\xfd",
        b"ACK lots more",
        b"LINK 1 again again 1",
        b"x" * (2 << 20),
    ],
)
async def test_garbage_ends_that_link_and_no_other(tmp_path: Path, line: bytes) -> None:
    async with (
        serving(tmp_path, links=LINKS) as ircd,
        raw_peer(ircd) as thor,
        raw_peer(ircd) as odin,
        registered(ircd.port, "spark-ori") as ori,
    ):
        await odin.link("odin", log="odin", epoch="0d100000")
        await thor.link(epoch="x")
        thor.send_raw(line + b"\r\n")
        said = await thor.ended()
        assert not said or said[-1].verb == "ERROR"
        await odin.answered()
        assert list(mesh_of(ircd).links) == ["odin"]
        assert await ori.ask("PRIVMSG spark-ori :still here")


@pytest.mark.fault("D15")
@pytest.mark.parametrize("seed", range(12))
async def test_a_fuzzing_peer_hurts_nobody_else(tmp_path: Path, seed: int) -> None:
    async with serving(tmp_path, links=LINKS) as ircd, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#fuzz")
        async with raw_peer(ircd) as odin, raw_peer(ircd) as thor:
            await odin.link("odin", log="odin", epoch="0d100000")
            await thor.link()
            thor.arrive("thor-bob")
            thor.join("thor-bob", "#fuzz")
            for _ in range(200):
                thor.send_raw(_spoiled(random.Random(seed), garbage(seed, VERBS, 1)))
                seed += 1000
            thor.send_raw(noise(seed, 2000) + b"\r\n")
            await thor.ended()
            await odin.answered()
            await ori.sync()
            assert list(mesh_of(ircd).links) == ["odin"] and not ircd.parts.skills.off
            user = ircd.parts.network.user("spark-ori")
            assert user is not None


def _spoiled(dice: random.Random, line: bytes) -> bytes:
    """Sometimes with an id and somebody of its own, so that it gets further."""
    stamp = f"@id=thor.5f0c2a91.{dice.randrange(100)};at=1773914400000000 :thor-bob!user@host ".encode()
    return stamp + line if dice.random() < 0.5 and not line.startswith(b"@") else line


class _Core:
    """A server that a link believes everything to be fine with."""

    def __getattr__(self, name: str) -> "_Core":
        return self

    def __call__(self, *_args: object) -> object:
        return LinkConfig(name="thor", secret=SECRET)

    def greeting(self, _link: LinkState) -> tuple[Message, ...]:
        return (Message("PASS", (SECRET,)), Message("SERVER", ("spark", "1", "x")))


words = st.lists(
    st.text(st.characters(codec="ascii", exclude_characters="\r\n\0 :"), min_size=1, max_size=9), max_size=6
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(VERBS), words), max_size=20))
def test_no_line_makes_a_link_raise(lines: list[tuple[str, list[str]]]) -> None:
    sent: list[bytes] = []
    link = LinkState(_Core(), sent.append, lambda _reason: None)  # type: ignore[arg-type]
    for verb, params in lines:
        try:
            message = Message.parse(" ".join((verb, *params)))
        except ProtocolError:
            continue
        link.receive(message)
        assert link.stage is not Stage.CLOSED or sent or verb == "ERROR" or link.why


@given(st.lists(st.tuples(st.sampled_from([verb for verb in VERBS if verb not in ("PASS", "SERVER")]), words)))
def test_before_the_greeting_nothing_is_heard(lines: list[tuple[str, list[str]]]) -> None:
    """Decision 10."""

    class Silent:
        admission = _Core()

        def __getattr__(self, name: str) -> object:
            raise AssertionError(f"{name} was asked before both sides were known")

    link = LinkState(Silent(), lambda _line: None, lambda _reason: None)  # type: ignore[arg-type]
    for verb, params in lines:
        link.receive(Message(verb, tuple(params)))
    assert link.stage in (Stage.GREETING, Stage.CLOSED)
