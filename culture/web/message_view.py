"""Convert messages to what the room template needs, and render them as HTML."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from culture.protocol.text import Profile, clean
from culture.protocol.vocabulary import UserClass
from culture.transport import Message
from culture.web import templates
from culture.web.unread import is_addressed_to

_ACTION = "* "


@dataclass(frozen=True, slots=True)
class MessageView:
    """One message with the fields that the room template shows, cleaned for display."""

    id: str
    sender: str
    kind: UserClass
    at: datetime
    text: str
    is_action: bool
    is_notice: bool
    is_own: bool
    is_for_reader: bool
    """Whether the message mentions the reader or was sent to them in private."""


def view_of(message: Message, reader: str) -> MessageView:
    """Return the fields of a message that the room template shows to the nick ``reader``."""
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
        is_addressed_to(message, reader),
    )


def render_messages(messages: Iterable[Message], reader: str) -> Markup:
    """Return messages as HTML list items, as a room shows them to the nick ``reader``."""
    template = templates.environment().get_template("messages.html")
    return Markup(template.render(messages=[view_of(message, reader) for message in messages]))
