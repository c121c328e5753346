"""A process that has loaded the command line's modules and forks for each command.

Problem: most commands of the tests take ten times longer to import their modules than to do their work.

Rule: modules are imported here, and nothing of them has run when this process forks. A fork has its own process id, and
exactly the arguments, environment, folder, umask and streams that were asked for. It ends as an interpreter does.

What a fork does not have: its own `/proc/PID/environ` and `/proc/PID/cmdline`.
"""

import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

MOST = 1 << 18
"""Bytes of the largest request."""
_LOADED = ("culture.cli", "culture.config", "culture.lib", "culture.protocol", "culture.transport", "culture.server")
# What Typer loads when a command runs.
_LATE = ("pydantic.type_adapter", "typer._adapters", "typer._click.decorators", "typer._click._textwrap")


def main() -> None:
    """Fork until the other end of the socket, whose number is the argument, is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tests' terminal does not mean it
    server = socket.socket(fileno=int(sys.argv[1]))
    gc.disable()
    for name in _LATE:
        importlib.import_module(name)
    for name in _LOADED:
        _load(name)
    gc.freeze()
    gc.enable()
    request = _serve(server)
    if request is not None:
        _become(request)


def _load(name: str) -> None:
    package = importlib.import_module(name)
    for found in pkgutil.walk_packages(package.__path__, f"{name}."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)


def _serve(server: socket.socket) -> dict[str, Any] | None:
    """Fork for each request. Returns the request in the fork, and None when there are no more."""
    waiting = selectors.DefaultSelector()
    waiting.register(server, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.data is not None:
                pid, reply = key.data
                waiting.unregister(key.fd)
                os.close(key.fd)
                _, status = os.waitpid(pid, 0)
                with suppress(OSError), reply:  # nobody may wait for it
                    reply.send(str(os.waitstatus_to_exitcode(status)).encode())
                continue
            text, descriptors, _, _ = socket.recv_fds(server, MOST, 4)
            if not text:
                return None
            pid = os.fork()
            if pid == 0:
                for number, given in enumerate(descriptors[:3]):
                    os.dup2(given, number)
                os.closerange(3, os.sysconf("SC_OPEN_MAX"))
                # Closed above: their objects must not close what gets their numbers.
                server.detach()
                for registered in list(waiting.get_map().values()):
                    if registered.data is not None:
                        registered.data[1].detach()
                request: dict[str, Any] = json.loads(text)
                return request
            reply = socket.socket(fileno=descriptors[3])
            for each in descriptors[:3]:
                os.close(each)
            with suppress(OSError):
                reply.send(str(pid).encode())
            waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, reply))


def _become(request: dict[str, Any]) -> None:
    """Do what ``python -m MODULE`` does from here on."""
    os.umask(request["umask"])
    os.chdir(request["cwd"])
    # Python itself has set this one, by the rule of PEP 538, and would do so again.
    locale = {name: os.environ[name] for name in ("LC_CTYPE",) if name in os.environ}
    os.environ.clear()
    os.environ.update(locale | request["environment"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path[0] = os.getcwd()
    module, arguments = request["module"], request["arguments"]
    sys.argv = ["", *arguments]  # what runpy replaces the first of
    sys.orig_argv = [sys.executable, "-m", module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
