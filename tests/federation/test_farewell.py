"""A server that stops takes leave of its peers: nothing that was said there has to come again."""

from pathlib import Path

import pytest

from culture.config.links import LinkConfig
from culture.federation import farewell
from tests.federation.meshes import linked
from tests.federation.raw import SECRET, mesh_of, raw_peer
from tests.support.client import registered
from tests.support.servers import serving
from tests.support.waiting import until

LINKS = (LinkConfig(name="thor", secret=SECRET), LinkConfig(name="odin", secret=SECRET))
MANY = 200


@pytest.mark.fault("B21")
async def test_the_peers_have_on_disk_what_was_said_before_it_goes(tmp_path: Path) -> None:
    """B21: over a line on which everything takes its time."""
    async with linked(tmp_path, ("spark", "thor"), [("spark", "thor")]) as made:
        ori, bob = await made.client("spark-ori", "#room"), await made.client("thor-bob", "#room")
        root = await made.operator("thor-root")
        await made.whole()
        made.delay("spark", "thor", 0.1)
        for number in range(MANY):
            ori.send(f"PRIVMSG #room :{number}")
        ori.send("PRIVMSG thor-bob :in private")
        await ori.sync()
        ours, theirs = mesh_of(made["spark"]).log, mesh_of(made["thor"]).log
        last = ours.position
        await made["spark"].stop("Server shutting down")
        assert not ours.held
        assert theirs.durable["spark"].log == ours.id and theirs.durable["spark"].position >= last
        heard = [row.params for row in await bob.sync() if row.verb == "PRIVMSG"]
        assert heard == [*(("#room", str(number)) for number in range(MANY)), ("thor-bob", "in private")]
        told = [row.params[-1] for row in await root.sync() if row.verb == "NOTICE"]
        assert [text for text in told if "spark" in text] == ["*** federation: spark has left: Server shutting down"]


@pytest.mark.fault("B21")
@pytest.mark.parametrize("caps", ["", "leave"])
async def test_who_confirms_nothing_is_not_waited_for_long(
    tmp_path: Path, caps: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B21: and who is too old to know the farewell is told by the end of the link alone."""
    monkeypatch.setattr(farewell, "_PATIENCE", 0.1)
    async with serving(tmp_path, links=LINKS) as ircd, raw_peer(ircd) as thor:
        await thor.link(caps=caps)
        async with registered(ircd.port, "spark-ori") as ori:
            await ori.join("#room")
            await ori.ask("PRIVMSG #room :nobody says that this has come")
        await ircd.stop("Server shutting down")
        rows = await thor.ended()
    assert [row.verb for row in rows if row.verb in ("LEAVE", "ERROR")] == (["LEAVE"] if caps else []) + ["ERROR"]
    assert rows[-1].params == ("Server shutting down",)


async def test_who_is_about_to_go_is_given_no_private_message(tmp_path: Path) -> None:
    async with serving(tmp_path, links=LINKS) as ircd, registered(ircd.port, "spark-ori") as ori:
        async with raw_peer(ircd) as thor:
            await thor.link()
            thor.arrive("thor-bob")
            thor.tell("LEAVE :back in a minute")
            await thor.answered()
            await ori.ask("PRIVMSG thor-bob :there in a minute")
            assert not [row for row in await thor.answered() if row.verb == "PRIVMSG"]
            thor.send("ERROR :bye")
            await thor.ended()
        await until(lambda: mesh_of(ircd).dialler.problems.get("thor") == "it has left: back in a minute")
        async with raw_peer(ircd) as thor:
            await thor.link()
            assert (await thor.expect("PRIVMSG")).params == ("thor-bob", "there in a minute")
