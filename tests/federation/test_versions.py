"""Peers of other versions: each is told what it knows, and no more."""

from pathlib import Path

import pytest

from culture.config.links import LinkConfig
from culture.federation import admission
from culture.federation.admission import CAPS
from culture.protocol.message import Message
from culture.server.events import Noted
from tests.federation.raw import EPOCH, SECRET, RawPeer, mesh_of, raw_peer
from tests.federation.test_backfill import PAIR, net
from tests.skills.ledger.test_ledger import agent, put
from tests.support.client import registered
from tests.support.servers import serving
from tests.support.waiting import until

LINKS = (LinkConfig(name="thor", secret=SECRET), LinkConfig(name="odin", secret=SECRET))
NEW = ",".join((*CAPS, "what-nobody-here-knows"))


def facts(rows: list[Message]) -> list[str]:
    """Those among what a peer was told."""
    return [row.params[1] for row in rows if row.verb == "LEDGER" and row.params[0] == "state"]


async def missed(peer: RawPeer) -> list[Message]:
    """What it is told of before."""
    rows = [await peer.receive()]
    while rows[-1].verb != "EOBACKFILL":
        rows.append(await peer.receive())
    return rows


@pytest.mark.fault("D15")
async def test_only_who_knows_the_ledger_is_told_of_it(tmp_path: Path) -> None:
    caps = "message-tags agentirc.dev/receipts"
    async with serving(tmp_path, links=LINKS) as ircd, registered(ircd.port, "spark-ori", caps) as ori:
        await ori.join("#general")
        await agent(ori)
        await put(ori, "state", "before", {"state": "before"})
        async with raw_peer(ircd) as old, raw_peer(ircd) as new:
            for peer, name, caps in ((old, "thor", ""), (new, "odin", NEW)):
                peer.greet(name)
                await peer.expect("SERVER")
                assert (await peer.expect("LINK")).params[4] == ",".join(CAPS)
                peer.agree(log=name, epoch="0d100000" if name == "odin" else EPOCH, caps=caps)
            # Who was never here is told what was noted before once more, beside the log.
            assert set(facts(await missed(new))) == {"before"}
            assert facts(await missed(old)) == []
            await put(ori, "state", "after", {"state": "after"})
            ori.send("PRIVMSG #general :and this is for both")
            assert (await old.expect("PRIVMSG")).params[1] == (await new.expect("PRIVMSG")).params[1]
            await put(ori, "state", "later", {"state": "later"})
            assert facts(await old.answered()) == []
            assert [key for key in facts(await new.answered()) if key != "before"] == ["later"]


@pytest.mark.fault("D15")
@pytest.mark.parametrize(("caps", "is_told"), [("", False), ("receipt", True)])
async def test_a_receipt_goes_only_to_who_knows_receipts(tmp_path: Path, caps: str, is_told: bool) -> None:
    async with (
        serving(tmp_path, links=LINKS) as ircd,
        registered(ircd.port, "spark-ori", "message-tags") as ori,
        raw_peer(ircd) as thor,
    ):
        await thor.link(caps=caps)
        thor.arrive("thor-bob")
        thor.event("PRIVMSG spark-ori :hello", "thor-bob!user@host")
        msgid = (await ori.expect("PRIVMSG")).tags["msgid"]
        assert not await ori.ask(f"RECEIPT delivered thor-bob {msgid}")
        told = [row for row in await thor.answered() if row.verb == "RECEIPT"]
        assert [row.params[1:] for row in told] == ([(msgid, "delivered")] if is_told else [])
        await until(lambda: bool(mesh_of(ircd).log.held) == is_told)


@pytest.mark.fault("D15")
async def test_what_an_older_version_could_not_take_comes_after_its_upgrade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with net(tmp_path, PAIR) as made:
        alfa, bravo = made.servers["alfa"], made.servers["bravo"]
        with monkeypatch.context() as older:
            older.setattr(admission, "CAPS", ())
            await made.crash("bravo")
            await made.heal()
            parts = alfa.ircd.parts
            with parts.turn():
                source = "alfa-ori!~ori@127.0.0.1"
                parts.router.publish(Noted(parts.router.ids.stamp(), source, "state", "now", "{}"))
            said = alfa.say("#x")
            await made.settle()
            assert bravo.kept() == {said}
            await made.crash("bravo")
        await made.heal()
        assert bravo.kept() == alfa.kept() and len(alfa.kept()) == 2
        assert bravo.published == {}
