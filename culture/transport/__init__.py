"""The IRC client: one identity on one server; it reconnects and loses no message.

| file | what it holds |
|---|---|
| `irc.py` | `IRCTransport`: the public interface (send, join, history, metadata) |
| `types.py` | addresses, identities, messages, marks, errors, callback types, timeouts |
| `reconnect.py` | the connect loop: dial, register, serve, back off; regaining the nick |
| `connection.py` | opens a TCP or TLS connection, checks the certificate; lines in and out, keepalive |
| `registration.py`, `sasl.py` | CAP negotiation, login and nick, without I/O |
| `session.py` | one registered connection: dispatches lines, matches answers to commands, limits the send rate |
| `requests.py` | commands and their answers, by label or by PING |
| `batches.py` | IRCv3 batches, multiline limits |
| `parse_messages.py` | lines and batches → `Message` |
| `view.py`, `view_updates.py` | the server's 005 tokens, who is in which channel; how each line changes that |
| `dedup.py`, `catchup.py` | each message once and in order; what was missed, from the history |
| `history.py`, `who.py` | CHATHISTORY and search; WHO and WHOIS |
| `profile.py`, `channels.py` | our own metadata and away message; the channels to be in |
| `message_sender.py` | text → lines that fit, sent one message after the other |
| `one_shot.py` | one command and its answer without registration |

The flow of an incoming message: `connection.lines` → `session.take` → `batches` → `view_updates.apply` and
`parse_messages` → `dedup.take_live` → `on_message`. Of an outgoing one: `irc.send_privmsg` → `message_sender` →
`session.ask` → `requests` → `connection.write`.
"""

from culture.transport.irc import IRCTransport
from culture.transport.types import (
    Address,
    ChannelMember,
    ClientIdentity,
    ConnectionState,
    Hopeless,
    Message,
    NoHistory,
    NotSent,
    ReceiveCursor,
    ReceiveMark,
    ServerUnreachable,
    Timing,
    Transport,
    WrongServer,
)
from culture.transport.view import NetworkView

__all__ = [
    "Address",
    "ChannelMember",
    "ClientIdentity",
    "ConnectionState",
    "Hopeless",
    "IRCTransport",
    "Message",
    "NetworkView",
    "NoHistory",
    "NotSent",
    "ReceiveCursor",
    "ReceiveMark",
    "ServerUnreachable",
    "Timing",
    "Transport",
    "WrongServer",
]
