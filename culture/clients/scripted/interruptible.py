"""Wait in a turn that can be interrupted at any moment, without polling."""

import os
import select
import time


class BrokenOff(Exception):
    """The running turn was interrupted."""


class Breaking:
    """Passes interrupts from the thread that reads input to the thread that executes a turn."""

    def __init__(self) -> None:
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._present = 0
        self._upto = 0

    def begin(self, turn: int) -> None:
        """Start the turn with this number; an interrupt of it that has come before counts."""
        self._present = turn
        self._silence()

    def break_off(self, turn: int) -> None:
        """Interrupt the turn with this number and all turns before it."""
        self._upto = max(self._upto, turn)
        os.eventfd_write(self._bell, 1)

    def check(self) -> None:
        """Raise ``BrokenOff`` if the running turn was interrupted."""
        if self._present <= self._upto:
            raise BrokenOff

    def wait(self, seconds: float, descriptor: int | None = None) -> bool:
        """Wait until the file descriptor is readable or the time is over; return whether it is.

        Raises ``BrokenOff`` if the turn is interrupted.
        """
        deadline = time.monotonic() + seconds
        poll = select.poll()
        for each in (self._bell, descriptor):
            if each is not None:
                poll.register(each, select.POLLIN)
        while (left := deadline - time.monotonic()) > 0:
            self.check()
            if any(ready == descriptor for ready, _ in poll.poll(left * 1000)):
                return True
            # The event may belong to an earlier turn.
            self._silence()
        self.check()
        return False

    def _silence(self) -> None:
        try:
            os.eventfd_read(self._bell)
        except BlockingIOError:
            pass
