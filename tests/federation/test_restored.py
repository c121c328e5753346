"""A server that was set back to an old backup: its peers take what it says next for new (decision 4)."""

import shutil
from pathlib import Path

import pytest

from culture.config.links import LinkConfig
from culture.config.model import Listen
from culture.server.core.ids import begin_epoch
from tests.support.client import registered
from tests.support.ports import reserved
from tests.support.servers import serving

SECRET = "correct-horse"


@pytest.mark.requirement("E07")
async def test_a_linked_server_accepts_the_next_message_after_a_restore(tmp_path: Path) -> None:
    with reserved() as spark_port, reserved() as thor_port:
        spark = {
            "name": "spark",
            "listen": (Listen(port=spark_port),),
            "links": (LinkConfig(name="thor", address=f"127.0.0.1:{thor_port}", secret=SECRET),),
        }
        thor = {
            "name": "thor",
            "listen": (Listen(port=thor_port),),
            "links": (LinkConfig(name="spark", secret=SECRET),),
        }
        (tmp_path / "thor").mkdir()
        data, backup = tmp_path / "spark" / "data", tmp_path / "backup"
        async with serving(tmp_path / "thor", **thor), registered(thor_port, "thor-bob") as bob:
            await bob.join("#x")
            async with serving(tmp_path / "spark", **spark):
                pass
            shutil.copytree(data, backup)
            async with serving(tmp_path / "spark", **spark), registered(spark_port, "spark-ori") as ori:
                await ori.join("#x")
                await bob.expect("JOIN", where=lambda line: line.source.startswith("spark-ori"))
                ori.send("PRIVMSG #x :before the restore")
                assert (await bob.expect("PRIVMSG")).params[1] == "before the restore"
            shutil.rmtree(data)
            shutil.copytree(backup, data)
            begin_epoch(data / "ids.json")
            async with serving(tmp_path / "spark", **spark), registered(spark_port, "spark-ori") as ori:
                await ori.join("#x")
                await bob.expect("JOIN", where=lambda line: line.source.startswith("spark-ori"))
                ori.send("PRIVMSG #x :after the restore")
                assert (await bob.expect("PRIVMSG")).params[1] == "after the restore"
                rows = await bob.ask("HISTORY RECENT #x 10")
                assert [row.params[-1] for row in rows[:-1]] == ["before the restore", "after the restore"]
