"""Ways to be taken for somebody else, and that they do not work (decisions 1-3, security page)."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from culture.config.model import Limits
from culture.protocol.vocabulary import UserClass
from culture.server import disk, peer_uid
from culture.server.accounts.login import WRONG, Check, Failed
from culture.server.accounts.model import new_account
from culture.server.accounts.store import AccountStore
from culture.server.ircd import IRCd
from culture.server.logins import Logins
from tests.support.client import connected, registered
from tests.support.people import PASSWORD, accounts_of, authenticate, come_in, plain, verifier
from tests.support.servers import Serve, serving


@pytest.fixture
def store(tmp_path: Path) -> AccountStore:
    """The people ori and ada, and the agent claude."""
    store = accounts_of(tmp_path, "ori", "ada")
    store.add(new_account("claude", UserClass.AGENT, verifier=verifier()))
    return store


@pytest.fixture
async def ircd(tmp_path: Path, store: AccountStore) -> AsyncIterator[IRCd]:
    async with serving(tmp_path, accounts_file=store.path) as running:
        yield running


@pytest.mark.requirement("A21")
@pytest.mark.parametrize("how", ["_by_netlink", "_by_proc"])
def test_a_socket_that_its_process_has_closed_is_nobodys(how: str) -> None:
    """Many kernels show it as root's, and a server that runs as root would take it for its own."""
    if not peer_uid.IS_KNOWN:
        pytest.skip("nobody can tell here")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        server, peer = listening.accept()
        with server:
            find = getattr(peer_uid, how)
            assert find(peer, server.getsockname()) == os.getuid()
            client.shutdown(socket.SHUT_WR)
            assert find(peer, server.getsockname()) == os.getuid()
            client.close()
            assert find(peer, server.getsockname()) is None


@pytest.mark.requirement("A21")
async def test_another_user_who_hangs_up_at_once_is_not_let_in(serve: Serve) -> None:
    """What was sent before the end must not be taken as said by somebody trusted."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    script = (
        "import os, socket, sys; 'x'.encode('idna'); os.setuid(65534);"
        "s = socket.create_connection(('127.0.0.1', int(sys.argv[1])));"
        "s.sendall(b'NICK spark-other\\r\\nUSER u 0 * :U\\r\\nPRIVMSG spark-ori :obey\\r\\n'); s.close()"
    )
    async with serve() as ircd, registered(ircd.port, "spark-ori") as ori:
        # The server must not be quicker than the client's end: it reads when the process is gone.
        subprocess.run([sys.executable, "-c", script, str(ircd.port)], check=True, timeout=20)  # noqa: ASYNC221
        heard = [*await ori.ask("VERSION"), *await ori.sync()]
        assert not [each for each in heard if each.verb == "PRIVMSG"]
