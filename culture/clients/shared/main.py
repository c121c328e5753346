"""Running one agent's daemon in this process until it is told to stop."""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from culture.clients.shared.assembly import assemble, read
from culture.clients.shared.daemon import AgentDaemon
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.orphans import adopted_orphans
from culture.clients.shared.pidfile import daemon_file
from culture.clients.shared.socket_file import SocketTaken
from culture.clients.shared.watchdog import Watchdog
from culture.config import paths
from culture.config.agents import ServerAddress
from culture.config.errors import ConfigError
from culture.lib import sd_notify
from culture.lib.files import LockTaken
from culture.lib.log_lines import start_logging
from culture.lib.process.log_rotation import rotate_own_log
from culture.protocol.vocabulary import Exit
from culture.transport import Hopeless, WrongServer

log = logging.getLogger(__name__)

LOG_BYTES = 8 << 20
"""The size at which a daemon's log is copied to ``.1`` and begun anew."""


def run(nick: str, config: Path | None = None, at: tuple[str, int] | None = None) -> int:
    """Run the agent of that nick; the exit code tells a supervisor of processes whether to try again.

    ``at`` is where the server is, when it is elsewhere than the file says.
    """
    start_logging()
    try:
        source = config or paths.agents_file()
        loaded = read(source)
        if at is not None:
            loaded = loaded.model_copy(
                update={"server": ServerAddress(host=at[0], port=at[1], user=loaded.server.user)}
            )
        agent = loaded.agent(nick)
        file = daemon_file(agent.nick if agent else nick)
        file.acquire()
    except ConfigError as error:
        return _wrong(str(error))
    except LockTaken as taken:
        print(f"{nick} is running already ({taken.note.strip()})", file=sys.stderr)
        return Exit.FAILED
    try:
        return asyncio.run(_run(assemble(loaded, nick, source), lambda: file.change(ready=True)))
    except WrongServer as other:
        # It may be in the place of ours for a while: systemd starts the daemon again.
        print(f"{nick}: {other}", file=sys.stderr)
        return Exit.FAILED
    except (WrongConfiguration, Hopeless) as error:
        return _wrong(str(error))
    except SocketTaken as taken:
        print(f"{nick}: {taken}", file=sys.stderr)
        return Exit.FAILED
    finally:
        file.release()


async def _run(daemon: AgentDaemon, ready: Callable[[], None]) -> int:
    watchdog = Watchdog()
    await watchdog.start()
    daemon.watch_over(watchdog.watch)
    try:
        with adopted_orphans():
            return await _serve(daemon, ready)
    finally:
        await watchdog.stop()


async def _serve(daemon: AgentDaemon, ready: Callable[[], None]) -> int:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, daemon.finished.set)
    starting = asyncio.create_task(daemon.start())
    told = asyncio.create_task(daemon.finished.wait())
    try:
        await asyncio.wait([starting, told], return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            ready()
            # Not before: who started it reads there why it did not come up.
            rotate_own_log(paths.log_file(daemon.config.nick), LOG_BYTES)
            sd_notify.notify("READY=1")
            log.info("%s is ready", daemon.config.nick)
            await told
        sd_notify.notify("STOPPING=1")
    finally:
        for task in (starting, told):
            task.cancel()
        await asyncio.gather(starting, told, return_exceptions=True)
        await daemon.stop()
    return _wrong(daemon.hopeless) if daemon.hopeless else Exit.DONE


def _wrong(text: str) -> int:
    print(text, file=sys.stderr)
    return Exit.WRONG_CONFIGURATION


def main(arguments: Sequence[str] | None = None) -> int:
    """``python3 -m culture.clients.claude.daemon <nick>``."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if len(words) != 1 or words[0].startswith("-"):
        print("usage: daemon <nick>   (an agent of ~/.culture/agents.yaml)", file=sys.stderr)
        return Exit.USAGE
    return run(words[0])
