"""The handlers of all verbs, one module per topic; ``COMMANDS`` is their table.

The docstring of a handler is its text in HELP: syntax first, then what the verb does for the client.

| module | verbs |
|---|---|
| ``registration`` | PASS NICK USER PING PONG QUIT |
| ``capability``, ``authenticate``, ``account`` | CAP; AUTHENTICATE; REGISTER VERIFY REDEEM |
| ``channels``, ``list_channels``, ``modes`` | JOIN PART TOPIC NAMES INVITE KICK RENAME; LIST; MODE |
| ``messages``, ``multiline``, ``redaction`` | PRIVMSG NOTICE TAGMSG; BATCH; REDACT |
| ``who``, ``whois`` | WHO; WHOIS WHOWAS ISON USERHOST |
| ``presence``, ``monitor``, ``metadata``, ``markread`` | AWAY SETNAME; MONITOR; METADATA; MARKREAD |
| ``server_info``, ``help``, ``operator`` | MOTD … STATS; HELP HELPOP; OPER KILL WALLOPS REHASH |
"""

from culture.server.commands import table
from culture.server.handlers import (
    account,
    authenticate,
    capability,
    channels,
    help,
    list_channels,
    markread,
    messages,
    metadata,
    modes,
    monitor,
    multiline,
    operator,
    presence,
    redaction,
    registration,
    server_info,
    who,
    whois,
)

COMMANDS = table(
    registration,
    capability,
    channels,
    messages,
    multiline,
    redaction,
    markread,
    modes,
    operator,
    presence,
    monitor,
    metadata,
    who,
    whois,
    list_channels,
    authenticate,
    account,
    server_info,
    help,
)
