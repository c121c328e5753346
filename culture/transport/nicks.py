"""Getting back the nick that somebody else has: most likely a connection of ours that the server still believes in."""

import asyncio
import logging

from culture.protocol.message import Message as Line
from culture.transport.session import Session

log = logging.getLogger(__name__)


async def regain(session: Session, wanted: str, interval: float) -> None:
    """Take the nick as soon as it is free; done when we have it."""
    view = session.view
    if view.is_self(wanted):
        return
    log.warning("%s is taken; %s until it is free", wanted, view.nick)
    free = asyncio.Event()

    def look(line: Line) -> None:
        nick = view.fold(line.source.partition("!")[0])
        gone = line.verb == "731" and any(view.fold(each) == view.fold(wanted) for each in line.params[-1].split(","))
        if gone or (line.verb in ("QUIT", "NICK") and nick == view.fold(wanted)):
            free.set()

    session.watchers.append(look)
    try:
        if "MONITOR" in view.features:
            await session.ask(Line("MONITOR", ("+", wanted)))
        while not view.is_self(wanted):
            try:
                async with asyncio.timeout(interval):
                    await free.wait()
            except TimeoutError:
                pass
            free.clear()
            await session.ask(Line("NICK", (wanted,)))
        if "MONITOR" in view.features:
            await session.ask(Line("MONITOR", ("-", wanted)))
    finally:
        session.watchers.remove(look)
