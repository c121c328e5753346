"""Sends one command without registering and returns the answer: for accepting an invitation."""

import asyncio

from culture.protocol.message import Message, ProtocolError
from culture.runtime import REAL, Runtime
from culture.transport.connection import dial, is_private
from culture.transport.types import Address, ClientIdentity, Hopeless

PATIENCE = 20.0
_UNKNOWN = {"421", "451"}


class RequestDeclined(Exception):
    """The server refused the command; the text of the exception is to be shown to people."""


async def ask_once(
    address: Address, identity: ClientIdentity, verb: str, *params: str, runtime: Runtime = REAL
) -> tuple[str, ...]:
    """Send one command and return the parameters of the server's answer with the same verb.

    Nothing is sent before the server has shown the expected certificate, or is known to run on this machine under a
    trusted user. Raises ``RequestDeclined`` if the server refuses, ``Hopeless`` for a wrong certificate or an
    unencrypted connection, ``PortHeld`` if another user of this machine listens on the port, OSError if the
    connection fails.
    """
    try:
        line = bytes(Message(verb, params))
    except ValueError:  # its text may contain a secret
        raise RequestDeclined("what you gave has signs in it that cannot be sent") from None
    async with asyncio.timeout(PATIENCE):
        reader, writer = await dial(address, identity, runtime=runtime)
        try:
            if not is_private(writer) and not address.fingerprint:
                raise Hopeless(f"{address.host} is on another machine, and what is said would not be encrypted")
            writer.write(line)
            await writer.drain()
            return await _read_answer(reader, verb)
        finally:
            writer.transport.abort()


async def _read_answer(reader: asyncio.StreamReader, verb: str) -> tuple[str, ...]:
    async for raw in reader:
        try:
            line = Message.parse(raw.decode("utf-8", "replace").strip())
        except ProtocolError:
            continue
        if line.verb == verb:
            return line.params
        if line.verb == "FAIL" and line.params[:1] == (verb,):
            raise RequestDeclined(line.params[-1])
        if line.verb == "ERROR":
            raise RequestDeclined(line.params[-1] if line.params else "it ended the connection")
        if line.verb in _UNKNOWN:
            raise RequestDeclined("it does not know invitations, or not yet: try again in a moment")
    raise RequestDeclined("it ended the connection before it answered; whether the invitation was used, it says there")
