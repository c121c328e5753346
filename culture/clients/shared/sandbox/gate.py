"""The way out of a sandbox: an HTTP proxy on a Unix socket, in the daemon, that connects to listed hosts only.

The program inside cannot resolve names and has no route. It asks here, with ``CONNECT host:port`` or a request for an
``http://`` address. The name must be listed; it is resolved here, once, and what is checked is the address that is then
connected to, so that a listed name cannot be pointed at this machine or its network later.
"""

import asyncio
import logging
import os
import re
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from urllib.parse import urlsplit

from culture.clients.shared.socket_connection import peer_uid
from culture.clients.shared.socket_file import SocketFile
from culture.config.sandbox import LOOPBACK_NAME, HostRule
from culture.lib.ssrf_guard import Ip, is_public

log = logging.getLogger(__name__)

MOST_TUNNELS = 128
LONGEST_HEAD = 1 << 15
HEAD_PATIENCE = 30.0
CONNECT_PATIENCE = 20.0
CHUNK = 1 << 16
MOST_WARNINGS = 100
_CONNECT = re.compile(r"CONNECT (\[[^\]\s]+\]|[^:\s]+):([0-9]{1,5}) HTTP/1\.[01]")
_PLAIN = re.compile(r"([A-Z]{1,20}) (http://\S+) (HTTP/1\.[01])")
_OF_THE_HOP = frozenset({"connection", "keep-alive", "host", "te", "trailer", "upgrade"})

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class NotAllowed(Exception):
    """The sandbox does not reach that place; the text says why, and what the owner can do."""


@dataclass(frozen=True, slots=True)
class ForbiddenPorts:
    """Where the IRC server is: nothing in ``hosts`` opens it."""

    server: str = ""
    port: int = 0
    local: frozenset[int] = frozenset()
    """The ports of culture's own servers on this machine and in its network."""

    def includes(self, ip: Ip, port: int, server_addresses: Sequence[str] = ()) -> bool:
        """Whether a connection there would reach a server of ours."""
        if port == self.port and str(ip) in server_addresses:
            return True
        return port in self.local | {self.port} and (not is_public(ip) or _is_own(ip))


def _is_own(ip: Ip) -> bool:
    """Whether this is an address of this machine, which may have a public one."""
    with socket.socket(socket.AF_INET6 if ip.version == 6 else socket.AF_INET, socket.SOCK_DGRAM) as trial:
        try:
            trial.bind((str(ip), 0))
        except OSError:
            return False
        return True


def permitted(ip: Ip, rules: Sequence[HostRule]) -> bool:
    """Whether these entries of ``hosts``, which name the host and the port, allow this address of the host."""
    ip = (ip.ipv4_mapped or ip) if isinstance(ip, IPv6Address) else ip
    if ip.is_unspecified or ip.is_multicast:
        return False
    named = [rule for rule in rules if not rule.is_address]
    if any(rule.host != LOOPBACK_NAME or ip.is_loopback for rule in rules if rule.is_address):
        return True
    near = ip.is_private and not (ip.is_loopback or ip.is_link_local or ip.is_reserved)
    return bool(named) and (is_public(ip) or (near and any(rule.explicit for rule in named)))


class NetworkGate:
    """Serves the forwarders of one agent's sandbox."""

    def __init__(self, nick: str, path: Path, rules: Sequence[HostRule], forbidden: ForbiddenPorts) -> None:
        self.path = path
        self._nick = nick
        self._rules = tuple(rules)
        self._forbidden = forbidden
        self._file: SocketFile | None = None
        self._server: asyncio.Server | None = None
        self._tunnels: set[asyncio.Task[None]] = set()
        self._warned: set[str] = set()

    async def start(self) -> None:
        """Listen; SocketTaken when the socket cannot be had."""
        self._file = SocketFile(self.path)
        self._server = await asyncio.start_unix_server(self._accept, sock=self._file.socket, limit=LONGEST_HEAD)

    async def stop(self) -> None:
        """Close the socket and every tunnel."""
        if self._server is None or self._file is None:
            return
        self._server.close()
        self._file.remove()
        self._server = self._file = None
        for tunnel in list(self._tunnels):
            tunnel.cancel()
        await asyncio.gather(*self._tunnels, return_exceptions=True)

    async def reach(self, host: str, port: int) -> Streams:
        """A connection to a listed host; NotAllowed or OSError when there is none."""
        rules = [rule for rule in self._rules if rule.matches(host, port)]
        if not rules:
            raise NotAllowed(f"{host}:{port} is not in sandbox.hosts of {self._nick}: its owner can add it there")
        allowed = [each for each in await _resolved(host, port) if permitted(ip_address(each), rules)]
        servers = await self._server_addresses(port)
        safe = [each for each in allowed if not self._forbidden.includes(ip_address(each), port, servers)]
        if not safe:
            why = "the IRC server" if allowed else "an address of this machine or its network"
            raise NotAllowed(f"{host}:{port} is {why}, which a sandbox does not reach")
        return await _connected(safe, port)

    async def _server_addresses(self, port: int) -> list[str]:
        if port != self._forbidden.port or not self._forbidden.server:
            return []
        with suppress(OSError):
            return await _resolved(self._forbidden.server, port)
        return []

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        uid = peer_uid(writer)
        try:
            if (uid is not None and uid != os.geteuid()) or len(self._tunnels) >= MOST_TUNNELS:
                return
            self._tunnels.add(task)
            await self._serve(reader, writer)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            pass  # stop() ended it, and the streams of Python 3.11 would log that as an error
        finally:
            self._tunnels.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEAD_PATIENCE):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            host, port, first = _request(head)
            upstream = await self.reach(host, port)
        except asyncio.LimitOverrunError:
            return await _answer(writer, 431, "the request is too long")
        except ValueError as wrong:
            return await _answer(writer, 400, str(wrong))
        except NotAllowed as refusal:
            self._warn(str(refusal))
            return await _answer(writer, 403, str(refusal))
        except TimeoutError:
            return await _answer(writer, 504, "no answer in time")
        except OSError as error:
            return await _answer(writer, 502, f"no connection: {error.strerror or error}")
        try:
            if first:
                upstream[1].write(first)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await _joined((reader, writer), upstream)
        finally:
            upstream[1].close()

    def _warn(self, text: str) -> None:
        """Log each refusal once: a program that tries for ever must not fill the log."""
        if text not in self._warned and len(self._warned) < MOST_WARNINGS:
            self._warned.add(text)
            log.warning("%s: refused: %s", self._nick, text)


def _request(head: str) -> tuple[str, int, bytes]:
    """The host and the port that a request is for, and what is sent there first: nothing for a tunnel."""
    line, *fields = head.removesuffix("\r\n\r\n").split("\r\n")
    if found := _CONNECT.fullmatch(line):
        return found[1].strip("[]"), int(found[2]), b""
    found = _PLAIN.fullmatch(line)
    if not found:
        raise ValueError("expected CONNECT host:port, or an http:// address")
    parts = urlsplit(found[2])
    host, port = parts.hostname or "", parts.port or 80
    place = f"[{host}]" if ":" in host else host
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    kept = [each for each in fields if not _is_of_the_hop(each)]
    lines = [f"{found[1]} {path} {found[3]}", f"Host: {place}:{port}" if port != 80 else f"Host: {place}", *kept]
    return host, port, "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")


def _is_of_the_hop(field: str) -> bool:
    name = field.partition(":")[0].strip().lower()
    return name in _OF_THE_HOP or name.startswith("proxy-")


async def _resolved(host: str, port: int) -> list[str]:
    async with asyncio.timeout(CONNECT_PATIENCE):
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=1)
    return list(dict.fromkeys(str(address[0]).partition("%")[0] for *_, address in found))


async def _connected(addresses: Sequence[str], port: int) -> Streams:
    failure: OSError | None = None
    for address in addresses:
        try:
            async with asyncio.timeout(CONNECT_PATIENCE):
                return await asyncio.open_connection(address, port)
        except OSError as error:
            failure = error
    assert failure is not None
    raise failure


async def _answer(writer: asyncio.StreamWriter, code: int, text: str) -> None:
    body = f"{text}\n".encode()
    head = f"HTTP/1.1 {code} culture sandbox\r\nContent-Type: text/plain; charset=utf-8\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
    await writer.drain()


async def _joined(one: Streams, other: Streams) -> None:
    """Carry bytes both ways until both sides have ended."""
    async with asyncio.TaskGroup() as ways:
        ways.create_task(_carry(one[0], other[1]))
        ways.create_task(_carry(other[0], one[1]))


async def _carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while chunk := await source.read(CHUNK):
            target.write(chunk)
            await target.drain()
        target.write_eof()
    except OSError:
        # The other way has nobody left to carry to either.
        target.transport.abort()
