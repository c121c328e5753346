"""One line to a server before coming in, and its answer: for who has no account or link yet, but was invited."""

import asyncio

from culture.protocol.message import Message, ProtocolError
from culture.transport.dialer import dial, is_private
from culture.transport.types import Address, ClientIdentity, Hopeless

PATIENCE = 20.0
_UNKNOWN = {"421", "451"}


class RequestDeclined(Exception):
    """The server says no; the text is for people."""


async def ask_once(address: Address, identity: ClientIdentity, verb: str, *params: str) -> tuple[str, ...]:
    """What the server answers ``verb`` with. Raises Declined, Hopeless for a wrong certificate, OSError, ``PortHeld``.

    Nothing is said before the other side has shown the certificate that is expected, or is known to be on this machine
    and of a user we trust.
    """
    try:
        line = bytes(Message(verb, params))
    except ValueError:  # whose text may have a secret in it
        raise RequestDeclined("what you gave has signs in it that cannot be sent") from None
    async with asyncio.timeout(PATIENCE):
        reader, writer = await dial(address, identity)
        try:
            if not is_private(writer) and not address.fingerprint:
                raise Hopeless(f"{address.host} is on another machine, and what is said would not be encrypted")
            writer.write(line)
            await writer.drain()
            return await _answered(reader, verb)
        finally:
            writer.transport.abort()


async def _answered(reader: asyncio.StreamReader, verb: str) -> tuple[str, ...]:
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
