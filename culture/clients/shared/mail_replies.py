"""What is said in answer to mail: the tags of replies, and that no answer will come."""

from culture.clients.shared.inbox import Mail
from culture.clients.shared.prompts import Prompt, title_of
from culture.protocol.vocabulary import ClientTag

FAILED = "[ERROR] I gave up on "
"""Prefix of the notice that tells a waiting sender no answer will come."""


def given_up(mail: Mail, why: str) -> str:
    """What is said of a message that is not answered any more."""
    if mail.is_own:
        return f'{FAILED}news of my own program, "{title_of(mail)}": {why}'
    return f"{FAILED}{mail.sender}'s message {mail.msgid}: {why}"


def replies_to(prompt: Prompt) -> dict[str, str]:
    """The tag of what answers a prompt: a reply to the first of its messages that was said on IRC."""
    return next(filter(None, map(reply_to, prompt.mails)), {})


def reply_to(mail: Mail) -> dict[str, str]:
    """The tag of what is said because of a message."""
    return {ClientTag.REPLY.value: mail.msgid} if not mail.msgid.startswith("local.") else {}
