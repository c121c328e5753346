"""Runs a server in this process until it is told to stop."""

import asyncio
import gc
import logging
import resource
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import attrgetter

from culture.cli.server.pid_file import ServerNote, held
from culture.config import paths
from culture.config.errors import ConfigError
from culture.config.model import NEEDS_RESTART, ServerConfig
from culture.lib import sd_notify
from culture.lib.log_lines import start_logging
from culture.lib.process.log_rotation import rotate_own_log
from culture.lib.process.pid_file import PidFile
from culture.server.ircd import IRCd
from culture.server.net.event_loop import ServerLoop
from culture.server.net.poller import Poller

log = logging.getLogger(__name__)

LOG_COPIES = 4
"""How many older parts of a server's log are kept."""

_GARBAGE = 50_000  # allocations before a collection of the youngest objects; a message makes about ten and frees them

Load = Callable[[], ServerConfig]


def serve(load: Load, *, options: Sequence[str] = ()) -> None:
    """Run a server in this process until SIGTERM or SIGINT.

    ``load`` reads the configuration, at the start and on SIGHUP. ``options``: arguments with which the server was
    started, for its pid file.
    """
    start_logging()
    config = load()
    rotate_own_log(paths.log_file(config.name), copies=LOG_COPIES)
    _prepare_process()
    poller = Poller()
    with (
        held(config, options) as pid_file,
        asyncio.Runner(loop_factory=lambda: ServerLoop(poller)) as runner,
    ):
        runner.run(_Run(config, load, pid_file, poller).until_told())


def _prepare_process() -> None:
    """Raise this process's limit of open files to the maximum, and make garbage collection rare."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    gc.freeze()
    gc.set_threshold(_GARBAGE, 50, 100)


class _Run:
    """One run of a server in this process, with its signal handlers."""

    def __init__(self, config: ServerConfig, load: Load, pid_file: PidFile[ServerNote], poller: Poller) -> None:
        self._config = config
        self._load = load
        self._pid_file = pid_file
        self._told = asyncio.Event()
        self._ircd = IRCd(config, poller=poller)
        self._ircd.reload = self._fresh

    async def until_told(self) -> None:
        """Serve until a signal comes; then send clients what is queued for them and disconnect them."""
        self._heed_signals()
        async with self._ircd.running():
            addresses = [(each.host, port) for each, port in zip(self._config.listen, self._ircd.ports, strict=True)]
            self._pid_file.change(addresses=tuple(addresses))
            sd_notify.notify("READY=1")
            await self._told.wait()
            sd_notify.notify("STOPPING=1")

    def _heed_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGHUP, self._reload, signal.SIGHUP)

    def _stop(self, number: signal.Signals) -> None:
        log.info("%s: stopping", number.name)
        # A second signal of the same kind ends the process at once.
        asyncio.get_running_loop().remove_signal_handler(number)
        self._told.set()
        with suppress(OSError):  # a full disk must not prevent the stop
            self._pid_file.change(stopping=True)

    def _reload(self, number: signal.Signals) -> None:
        log.info("%s: reading the configuration again", number.name)
        sd_notify.reloading()
        try:
            self._ircd.rehash(self._fresh())
        except ConfigError as error:
            log.error("the configuration stays as it was:\n%s", error)
        sd_notify.notify("READY=1")

    def _fresh(self) -> ServerConfig:
        config = self._load()
        unchanged = sorted(key for key in NEEDS_RESTART if attrgetter(key)(config) != attrgetter(key)(self._config))
        if unchanged:
            log.warning("only a restart changes %s", ", ".join(unchanged))
        return config
