"""The handlers of all verbs, one module per topic; ``COMMANDS`` is their table.

The docstring of a handler is its text in HELP: syntax first, then what the verb does for the client.

| module | verbs |
|---|---|
| ``registration`` | PASS NICK USER PING PONG QUIT |
| ``capability``, ``authenticate``, ``account`` | CAP; AUTHENTICATE; REGISTER VERIFY REDEEM |
| ``channels``, ``modes`` | JOIN PART TOPIC NAMES INVITE KICK RENAME LIST; MODE |
| ``messages``, ``redaction`` | PRIVMSG NOTICE TAGMSG BATCH MARKREAD; REDACT |
| ``who`` | WHO WHOIS WHOWAS ISON USERHOST |
| ``presence``, ``metadata`` | AWAY SETNAME MONITOR; METADATA |
| ``server_info``, ``operator`` | MOTD … STATS HELP HELPOP; OPER KILL WALLOPS REHASH |
"""

from culture.server.commands import table
from culture.server.handlers import (
    account,
    authenticate,
    capability,
    channels,
    messages,
    metadata,
    modes,
    operator,
    presence,
    redaction,
    registration,
    server_info,
    who,
)

COMMANDS = table(
    registration,
    capability,
    channels,
    messages,
    redaction,
    modes,
    operator,
    presence,
    metadata,
    who,
    authenticate,
    account,
    server_info,
)
