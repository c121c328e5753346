"""A server takes clock, chance, disk and sockets from the runtime that it is given."""

import os
import socket
from pathlib import Path

import pytest

from culture.config import peer_uid
from culture.config.peer_uid import PortHeld, check_peer
from culture.runtime import Runtime
from culture.server.ircd import IRCd
from tests.support.client import connected, registered
from tests.support.servers import config_for

NOBODY = 65534


class OwnedSockets(Runtime):
    """The real runtime, but every socket of this machine belongs to one user."""

    def __init__(self, uid: int) -> None:
        self.socket_owner = lambda _client, _server: (uid, 1)


@pytest.mark.skipif(not peer_uid.IS_KNOWN, reason="nobody can tell here whose a connection is")
async def test_the_runtime_tells_whose_a_client_is(tmp_path: Path) -> None:
    ircd = IRCd(config_for(tmp_path), runtime=OwnedSockets(NOBODY))
    async with ircd.running(), connected(ircd.port) as client:
        client.send("NICK spark-ori")
        client.send("USER ori 0 * :Ori")
        [refusal] = [each for each in await client.ended() if each.verb == "464"]
        assert "you are another user of this machine" in refusal.params[-1]


@pytest.mark.skipif(not peer_uid.IS_KNOWN, reason="nobody can tell here whose a connection is")
def test_the_runtime_tells_whose_a_server_is() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        check_peer(client, runtime=OwnedSockets(os.getuid()))
        with pytest.raises(PortHeld):
            check_peer(client, runtime=OwnedSockets(NOBODY))


class Counted(Runtime):
    """The real runtime with a clock that stands still, tokens that anybody can guess, and a count of its fsyncs."""

    def __init__(self) -> None:
        self.now = lambda: 1_800_000_000.0
        self.token_hex = lambda size: "ab" * size
        self.synced = 0
        real = self.fsync

        def fsync(file: int) -> None:
            self.synced += 1
            real(file)

        self.fsync = fsync


async def test_ids_times_and_what_is_on_disk_follow_the_runtime(tmp_path: Path) -> None:
    runtime = Counted()
    config = config_for(tmp_path, history={"enabled": False})
    async with IRCd(config, runtime=runtime).running() as ircd, registered(ircd.port, "spark-ori") as ori:
        stamp = ircd.parts.router.ids.stamp()
        assert (stamp.epoch, stamp.at) == ("abababab", 1_800_000_000.0)
        [up] = [each for each in await ori.ask("STATS u") if each.verb == "242"]
        assert up.params[-1] == "Server Up 0 days 0:00:00"
        before = runtime.synced
        ircd.parts.markers.write(b"{}")
        assert runtime.synced == before + 2  # the file and its folder
