"""What differs from run to run comes from the runtime that the transport is given."""

import socket
from datetime import UTC, datetime

from culture.protocol.message import Message as Line
from culture.runtime import Runtime
from culture.server.ircd import IRCd
from culture.transport.parse_messages import MessageParser
from culture.transport.sasl import ScramLogin
from culture.transport.view import NetworkView
from tests.transport.conftest import Come


class Fixed(Runtime):
    """A clock that stands still, tokens without chance, and a record of the sockets."""

    def __init__(self) -> None:
        self.now = lambda: 1e9
        self.token_hex = lambda count: "0f" * count
        self.token_urlsafe = lambda count: "n" * count
        self.sockets: list[socket.socket] = []

    def new_socket(
        self, family: int = socket.AF_INET, kind: int = socket.SOCK_STREAM, protocol: int = 0
    ) -> socket.socket:
        self.sockets.append(super().new_socket(family, kind, protocol))
        return self.sockets[-1]


def test_times_and_ids_that_a_server_does_not_give_come_from_the_runtime() -> None:
    parser = MessageParser(NetworkView("ada"), (), (), runtime=Fixed())
    message = parser.message(Line("PRIVMSG", ("ada", "hello"), "bob!b@host"))
    assert message is not None
    assert message.timestamp == datetime.fromtimestamp(1e9, UTC)
    assert message.msgid == "local.0f0f0f0f.1"


def test_the_nonce_of_a_login_comes_from_the_runtime() -> None:
    assert ScramLogin("ada", "secret", runtime=Fixed()).answer(b"") == b"n,,n=ada,r=" + b"n" * 24


async def test_the_socket_comes_from_the_runtime(ircd: IRCd, come: Come) -> None:
    runtime = Fixed()
    ada = await come(ircd.port, "ada", runtime=runtime)
    assert ada.irc.connected
    assert len(runtime.sockets) == 1
