"""MCP servers as commands: for many programs until told to stop, or for the one that started us."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from types import ModuleType
from typing import NoReturn

import typer

from culture.cli.output import fail
from culture.config.installation import installation
from culture.lib import sd_notify
from culture.lib.log_lines import start_logging
from culture.protocol.vocabulary import Exit

_CHATTY = ("uvicorn", "mcp")


def loaded(module: str) -> ModuleType:
    """What serves; it needs packages that not everybody has, and loading them takes a while."""
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        fail(f"{missing.name} is not installed: {installation().extend('bridge')}", Exit.WRONG_CONFIGURATION)


def shown_place(host: str, port: int) -> str:
    """An address as it stands in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def over_http(serving: AbstractAsyncContextManager[int], host: str, port: int, shown: Callable[[int], str]) -> None:
    """Serve until told to stop; ``shown`` is what to say when programs may come, given the port."""
    start_logging()
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        asyncio.run(_until_told(serving, shown))
    except OSError as error:
        fail(f"{host} port {port}: {error.strerror or error}")


def over_stdio(serving: Coroutine[None, None, None]) -> NoReturn:
    """Serve the one program that started this, and end."""
    start_logging(logging.WARNING)
    asyncio.run(serving)
    sys.stdout.flush()
    os._exit(Exit.DONE)  # a thread may still wait for input that never comes


async def _until_told(serving: AbstractAsyncContextManager[int], shown: Callable[[int], str]) -> None:
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    async with serving as port:
        typer.echo(shown(port))
        sd_notify.notify("READY=1")
        await told.wait()
