"""What the skills and the links take from the runtime they are given, and not from the machine."""

from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from culture.config.links import LinkConfig
from culture.config.skills import LoggerConfig
from culture.runtime import Runtime, Thread
from culture.server.ircd import IRCd
from tests.support.client import registered
from tests.support.servers import config_for


class Noted(Runtime):
    """The real runtime, which notes what is asked of it."""

    def __init__(self) -> None:
        self.databases: set[str] = set()
        self.threads: set[str] = set()

    def connect(self, database: Any, **options: Any) -> Any:
        self.databases.add(Path(str(database).partition("?")[0]).name)
        return super().connect(database, **options)

    def thread(self, target: Callable[..., object], name: str, *args: object) -> Thread:
        self.threads.add(name)
        return super().thread(target, name, *args)

    def pool(self, workers: int, name: str) -> Executor:
        self.threads.add(name)
        return super().pool(workers, name)


async def test_threads_and_databases_come_from_the_runtime(tmp_path: Path) -> None:
    runtime = Noted()
    link = LinkConfig(name="thor", secret="s" * 32)
    config = config_for(tmp_path, logger=LoggerConfig(enabled=True, folder=tmp_path / "log"), links=(link,))
    async with IRCd(config, runtime=runtime).running() as ircd, registered(ircd.port, "spark-ori") as ori:
        await ori.join("#a")
        await ori.ask("PRIVMSG #a :see https://example.org/")
    assert runtime.databases >= {"history.db", "ledger.db", "links.db", "log.db"}
    assert runtime.threads >= {
        "federation-log",
        "federation-reader",
        "history-keeper",
        "history-reader",
        "history-searcher",
        "history-writer",
        "keeping",
        "logger",
        "urlindex-reader",
        "urlindex-searcher",
    }
