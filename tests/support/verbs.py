"""Every verb of a server with links: its own, and those of the skills that are on."""

import asyncio
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from culture.config.links import LinkConfig
from culture.server.ircd import IRCd
from tests.support.servers import config_for


@cache
def every_verb() -> tuple[str, ...]:
    """As the table of a server has them."""
    with TemporaryDirectory() as folder:
        ircd = IRCd(config_for(Path(folder), links=(LinkConfig(name="thor", secret="correct-horse"),)))
        asyncio.run(ircd.stop("only looked at"))
        return tuple(sorted(ircd.parts.commands))
