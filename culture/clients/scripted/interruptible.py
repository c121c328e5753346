"""Waiting in a turn that may be broken off at any moment, without looking again and again."""

import os
import select
import time


class BrokenOff(Exception):
    """The present turn is not wanted any more."""


class Breaking:
    """Whether the present turn was broken off: asked by the thread that takes turns, told by the one that listens."""

    def __init__(self) -> None:
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._present = 0
        self._upto = 0

    def begin(self, turn: int) -> None:
        """A turn begins; it may have been broken off before."""
        self._present = turn
        self._silence()

    def break_off(self, turn: int) -> None:
        """Break a turn off, and all before it."""
        self._upto = max(self._upto, turn)
        os.eventfd_write(self._bell, 1)

    def check(self) -> None:
        """Go no further when the turn was broken off."""
        if self._present <= self._upto:
            raise BrokenOff

    def wait(self, seconds: float, descriptor: int | None = None) -> bool:
        """Wait until time is up or the descriptor can be read: whether it can be."""
        deadline = time.monotonic() + seconds
        poll = select.poll()
        for each in (self._bell, descriptor):
            if each is not None:
                poll.register(each, select.POLLIN)
        while (left := deadline - time.monotonic()) > 0:
            self.check()
            if any(ready == descriptor for ready, _ in poll.poll(left * 1000)):
                return True
            # It may have rung for a turn that is over.
            self._silence()
        self.check()
        return False

    def _silence(self) -> None:
        try:
            os.eventfd_read(self._bell)
        except BlockingIOError:
            pass
