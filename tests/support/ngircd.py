"""A server that is not ours: ngIRCd, with few capabilities and no history."""

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.clock import sleep
from tests.support.ports import reserved
from tests.support.proxy import proxied
from tests.support.waiting import PATIENCE

_SETTINGS = """[Global]
Name = irc.example.net
Info = not ours
Listen = 127.0.0.1
Ports = {port}
Password = {password}
MotdPhrase = hello
[Limits]
MaxConnectionsIP = 0
MaxNickLength = 20
MaxPenaltyTime = 0
[Options]
DNS = no
Ident = no
PAM = no
"""


@asynccontextmanager
async def ngircd(folder: Path, password: str = "") -> AsyncIterator[int]:
    """The port of one that runs."""
    program = shutil.which("ngircd") or shutil.which("ngircd", path="/usr/sbin")
    if program is None:
        pytest.skip("ngircd is not installed")
    with reserved() as port:
        file = folder / "ngircd.conf"
        file.write_text(_SETTINGS.format(port=port, password=password), encoding="utf-8")
        if os.geteuid() == 0:
            file.chmod(0o644)  # it gives up root before it reads
            for each in (folder, *folder.parents):
                if each.stat().st_uid == 0 and each != Path("/"):
                    each.chmod(each.stat().st_mode | 0o011)
        process = await asyncio.create_subprocess_exec(
            program, "-n", "-f", str(file), stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            await _listening(port, process)
            if os.geteuid() != 0:
                yield port
                return
            # As root it becomes nobody, whom no client of ours talks to; a program of our own in front of it may.
            async with proxied(port) as proxy:
                yield proxy.port
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _listening(port: int, process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            assert process.returncode is None, "ngircd did not start"
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            await sleep(0.02)
