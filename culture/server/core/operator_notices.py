"""Notices to IRC operators about problems of the server."""

import logging

from culture.protocol.message import Message
from culture.protocol.split import room, split_text
from culture.server.context import ServerParts
from culture.server.core.encode import wire
from culture.server.core.visibility import is_operator

log = logging.getLogger(__name__)


def tell(parts: ServerParts, text: str, error: BaseException | None = None) -> None:
    """Send a text as a notice to each IRC operator on this server, and log it.

    ``error``: an exception whose traceback is logged as well.
    """
    log.log(logging.WARNING if error is None else logging.ERROR, "%s", text, exc_info=error)
    router = parts.router
    with parts.turn():
        for user, sessions in router.sessions.items():
            if is_operator(user):
                for piece in split_text(f"*** {text}", room(router.name, "NOTICE", user.nick)):
                    line = wire(Message("NOTICE", (user.nick, piece), router.name))
                    for session in sessions:
                        session.push(line)
