"""Messages as the page shows them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from culture.protocol.text import Profile, clean
from culture.protocol.vocabulary import UserClass
from culture.transport import Message
from culture.web import templates
from culture.web.unread import calls

_ACTION = "* "


@dataclass(frozen=True, slots=True)
class MessageView:
    """One message."""

    id: str
    sender: str
    kind: UserClass
    at: datetime
    text: str
    is_action: bool
    is_notice: bool
    is_own: bool
    calls: bool
    """It is for the one who reads."""


def said_by(message: Message, reader: str) -> MessageView:
    """A message as this reader sees it."""
    text = clean(message.text, Profile.WEB)
    is_action = text.startswith(_ACTION) and "\n" not in text
    return MessageView(
        message.msgid,
        clean(message.sender, Profile.WEB),
        message.kind,
        message.timestamp,
        text.removeprefix(_ACTION) if is_action else text,
        is_action,
        message.notice,
        message.own,
        calls(message, reader),
    )


def drawn(messages: Iterable[Message], reader: str) -> Markup:
    """Messages as lines of a room."""
    template = templates.environment().get_template("messages.html")
    return Markup(template.render(messages=[said_by(message, reader) for message in messages]))
