"""What becomes of a message with whom it was for, told to who said it."""

from collections.abc import Collection

from culture.protocol.message import Message
from culture.protocol.vocabulary import Cap, ClientTag, Receipt, Tag
from culture.server.core.render import iso_time
from culture.server.events import Receipted
from culture.server.skill import Host, hook
from culture.skills.history.intake import Intake

_STATES = frozenset({Receipt.DELIVERED.value, Receipt.INJECTED.value, Receipt.ANSWERED.value})


class Receipts:
    """Tells those sessions of the sender that want to know."""

    def __init__(self, host: Host, intake: Intake) -> None:
        self._host = host
        self._intake = intake

    @hook(Receipted)
    def show(self, event: Receipted) -> None:
        """A message has come further."""
        user = self._host.network.user(event.target)
        if user is None or event.state not in _STATES:
            return
        told = [
            (session, bytes(Message("TAGMSG", (user.nick,), event.source, _tags(event, session.caps.enabled))))
            for session in self._host.sessions(user)
            if Cap.RECEIPTS.value in session.caps.enabled
        ]
        self._intake.receipt(event.msgid, told)


def _tags(event: Receipted, enabled: Collection[str]) -> dict[str, str]:
    tags = {Tag.RECEIPT.value: event.state, ClientTag.REPLY.value: event.msgid}
    return {"time": iso_time(event.id.at), **tags} if "server-time" in enabled else tags
