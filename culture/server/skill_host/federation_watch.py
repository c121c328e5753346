"""Takes up links that are made while the server runs without any."""

import asyncio
import logging

from culture.server.context import ServerParts
from culture.server.errors import StartError
from culture.server.skill_host.loader import FEDERATION, federation, has_links

log = logging.getLogger(__name__)

PERIOD = 1.0


async def watch(parts: ServerParts) -> None:
    """Look every second until there is one; from then on the links look after themselves."""
    while not parts.skills.has(FEDERATION):
        await asyncio.sleep(PERIOD)
        if not has_links(parts.config) or parts.skills.has(FEDERATION):
            continue
        try:
            await parts.skills.add_first(*federation(parts.config))
        except StartError as error:
            log.error("this server is linked to none: %s", error)
            return
