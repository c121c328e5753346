"""Parse the IRC messages in a prompt: sender, text and where to answer."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_HEAD = re.compile(r"^\[IRC (?:(?:@mention )?in (?P<channel>\S+)|DM)\] <(?P<sender>\S+)> (?P<text>.*)$", re.MULTILINE)
_EVENT = re.compile(r"^\([0-9]{2}:[0-9]{2} UTC: .*\)(?:\n|\Z)", re.MULTILINE)
_MORE = "    "
_TEAM = "[TEAM] "


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One IRC message in a prompt: sender, text, where to answer, and its position there."""

    sender: str
    text: str
    target: str
    start: int = 0


def without_events(prompt: str) -> str:
    """Return the prompt without the daemon's reports about earlier work."""
    return _EVENT.sub("", prompt).rstrip("\n") if _EVENT.search(prompt) else prompt


def messages_in(prompt: str) -> list[PromptMessage]:
    """Return the messages in a prompt, in order."""
    return [
        PromptMessage(
            sender=head["sender"],
            text="\n".join([head["text"], *_further_lines(prompt[head.end() + 1 :])]),
            target=head["channel"] or head["sender"],
            start=head.start(),
        )
        for head in _HEAD.finditer(prompt)
    ]


def message_at(prompt: str, position: int | None, nick: str) -> PromptMessage:
    """Return the last message of a prompt that begins at or before ``position``.

    Without such a message, the last of all. A leading mention of ``nick``, the agent, is removed from its text.
    """
    messages = messages_in(prompt)
    before = [message for message in messages if position is None or message.start <= position]
    message = (before or messages or [PromptMessage("", prompt.removeprefix(_TEAM), "")])[-1]
    return PromptMessage(message.sender, _without_mention(message.text, nick), message.target, message.start)


def _further_lines(rest: str) -> Iterator[str]:
    for line in rest.split("\n"):
        if not line.startswith(_MORE):
            return
        yield line.removeprefix(_MORE)


def _without_mention(text: str, nick: str) -> str:
    if not nick:
        return text
    names = "|".join(map(re.escape, (nick, nick.partition("-")[2] or nick)))
    return re.sub(rf"^(?:@(?:{names})(?![\w-])[,:]?|(?:{names}):)\s*", "", text, flags=re.IGNORECASE)
