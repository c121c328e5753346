"""The poller's turns: one that fails is nobody else's."""

import errno
import socket

import pytest

from culture.config.model import Listen
from culture.server.net.listener import Listener
from culture.server.net.poller import Poller
from tests.support.client import registered
from tests.support.servers import Serve


class Writer:
    """Somebody with output, written or failing."""

    def __init__(self, fails: bool) -> None:
        self.fails = fails
        self.written = False

    def flush(self) -> None:
        if self.fails:
            raise RuntimeError("a bug")
        self.written = True


def test_a_write_that_fails_keeps_nobody_from_theirs() -> None:
    poller, last = Poller(), Writer(fails=False)
    with poller.turn():
        poller.dirty += [Writer(fails=True), last]
    assert last.written
    poller.close()


def test_a_turn_within_a_turn_is_a_part_of_it() -> None:
    """Writing may end sessions, which nobody expects in the middle of a command."""
    poller, first, second = Poller(), Writer(fails=False), Writer(fails=False)
    with poller.turn():
        poller.dirty.append(first)
        with poller.turn():
            poller.dirty.append(second)
        assert not first.written and not second.written
    assert first.written and second.written
    poller.close()


def test_a_turn_that_ends_in_an_error_is_over() -> None:
    poller, late = Poller(), Writer(fails=False)
    with pytest.raises(RuntimeError), poller.turn():
        raise RuntimeError("a bug")
    with poller.turn():
        poller.dirty.append(late)
    assert late.written
    poller.close()


def test_a_turn_that_fails_leaves_the_others_theirs() -> None:
    poller, called = Poller(), []

    def fail(events: int) -> None:
        called.append(events)
        raise RuntimeError("a bug")

    pairs = [socket.socketpair() for _ in range(3)]
    for here, there in pairs:
        poller.watch(here.fileno(), fail)
        there.send(b"x")
    poller.serve(0)
    assert len(called) == 3
    poller.close()
    for here, there in pairs:
        here.close()
        there.close()


async def test_a_listener_out_of_descriptors_rests_and_can_be_stopped(serve: Serve) -> None:
    """It rests, accepts again, and a server that is stopped meanwhile tells its clients as ever (B21)."""
    poller = Poller()
    listener = Listener(Listen(port=0), poller, lambda *_: None, lambda: False)
    listener.start()
    listener._back_off(OSError(errno.EMFILE, "Too many open files"))
    listener._again()
    listener._back_off(OSError(errno.EMFILE, "Too many open files"))
    listener.stop()
    poller.close()
    async with serve() as ircd, registered(ircd.port, "spark-ori") as ori:
        ircd._listeners[0]._back_off(OSError(errno.EMFILE, "Too many open files"))
        await ircd.stop("Server shutting down")
        assert (await ori.ended())[-1].verb == "ERROR"
