"""asyncio's event loop around the poller: one wait for client sockets and everything else."""

import asyncio
import math
import selectors
from collections.abc import Mapping
from typing import Any

from culture.server.net.poller import READ, WRITE, Poller


class ServerLoop(asyncio.SelectorEventLoop):
    """An event loop of asyncio that waits on the poller's own set: a turn costs one system call."""

    def __init__(self, poller: Poller) -> None:
        super().__init__(_TurnSelector(poller))


class _TurnSelector(selectors.BaseSelector):
    """asyncio's selector: ``select`` serves the poller's clients and returns all other events."""

    def __init__(self, poller: Poller) -> None:
        poller.is_driven = True
        self._poller = poller
        self._keys: dict[int, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        descriptor = _descriptor(fileobj)
        if descriptor in self._keys:
            raise KeyError(f"{fileobj!r} is already registered")
        self._poller.watch(descriptor, None, _to_poller(events))
        self._keys[descriptor] = key = selectors.SelectorKey(fileobj, descriptor, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = self._keys.pop(_descriptor(fileobj))
        self._poller.forget(key.fd)
        return key

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # Rounded up to epoll's millisecond: rounded down, the loop would spin before each timer.
        wait = timeout if timeout is None or timeout <= 0 else math.ceil(timeout * 1000) / 1000
        others = self._poller.serve(wait)
        if not others:
            return []
        keys = self._keys
        return [(keys[fd], _from_poller(events) & keys[fd].events) for fd, events in others if fd in keys]

    def close(self) -> None:
        self._keys.clear()
        self._poller.close()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys[_descriptor(fileobj)]


def _descriptor(fileobj: Any) -> int:
    return fileobj if isinstance(fileobj, int) else int(fileobj.fileno())


def _to_poller(events: int) -> int:
    return (READ if events & selectors.EVENT_READ else 0) | (WRITE if events & selectors.EVENT_WRITE else 0)


def _from_poller(events: int) -> int:
    # An error or a hang-up is reported to readers and writers.
    mask = 0
    if events & ~READ:
        mask |= selectors.EVENT_WRITE
    if events & ~WRITE:
        mask |= selectors.EVENT_READ
    return mask
