"""Runs an MCP server as a command: over HTTP until stopped, or over stdio for one program."""

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


def load_module(module: str) -> ModuleType:
    """Import and return a module that needs optional packages.

    If a package is missing, the command ends and prints how to install it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        fail(f"{missing.name} is not installed: {installation().extend('bridge')}", Exit.WRONG_CONFIGURATION)


def format_address(host: str, port: int) -> str:
    """Return ``host:port`` for a URL, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def serve_http(serving: AbstractAsyncContextManager[int], host: str, port: int, message: Callable[[int], str]) -> None:
    """Serve MCP over HTTP until SIGTERM or SIGINT; end the command if the port cannot be used.

    ``serving`` starts the server and yields its port. ``host`` and ``port`` are for the error message.
    ``message(port)`` is printed when the server has started.
    """
    start_logging()
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        asyncio.run(_until_told(serving, message))
    except OSError as error:
        fail(f"{host} port {port}: {error.strerror or error}")


def serve_stdio(serving: Coroutine[None, None, None]) -> NoReturn:
    """Serve MCP to the program that started this process, by awaiting ``serving``; then exit."""
    start_logging(logging.WARNING)
    asyncio.run(serving)
    sys.stdout.flush()
    os._exit(Exit.DONE)  # a thread may still be waiting for input


async def _until_told(serving: AbstractAsyncContextManager[int], message: Callable[[int], str]) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with serving as port:
        typer.echo(message(port))
        sd_notify.notify("READY=1")
        await stop.wait()
