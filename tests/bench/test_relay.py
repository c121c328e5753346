"""The load between two servers notices what is lost, doubled or out of order."""

from asyncio import StreamWriter
from typing import cast

import pytest

from bench.relay import Load


class Written:
    """Takes what is sent."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data


def arrival(number: int) -> bytes:
    return b":spark-s0!~bench@127.0.0.1 PRIVMSG #mesh :%08d xxx\r\n" % number


@pytest.fixture
def writer() -> Written:
    return Written()


@pytest.fixture
def load(writer: Written) -> Load:
    return Load([cast(StreamWriter, writer)], 3)


def test_everything_once_and_in_order_in_any_pieces(load: Load, writer: Written) -> None:
    load.top_up()
    load.top_up()
    assert [line.split()[2] for line in writer.data.splitlines()] == [b":00000000", b":00000001", b":00000002"]
    for byte in b":thor NOTICE x :hello\r\n" + b"".join(map(arrival, range(3))):
        assert not load.is_done
        load.take(bytes([byte]))
    assert load.is_done


@pytest.mark.parametrize("numbers", [(1,), (0, 0), (0, 2)])
def test_anything_else_is_told(load: Load, numbers: tuple[int, ...]) -> None:
    with pytest.raises(SystemExit, match="was due"):
        load.take(b"".join(map(arrival, numbers)))
