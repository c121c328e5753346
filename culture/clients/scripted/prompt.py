"""The messages of a prompt: who said what, and where the answer goes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_HEAD = re.compile(r"^\[IRC (?:(?:@mention )?in (?P<channel>\S+)|DM)\] <(?P<sender>\S+)> (?P<text>.*)$", re.MULTILINE)
_EVENT = re.compile(r"^\([0-9]{2}:[0-9]{2} UTC: .*\)(?:\n|\Z)", re.MULTILINE)
_MORE = "    "
_TEAM = "[TEAM] "


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message, and where in the prompt it begins."""

    sender: str
    text: str
    target: str
    start: int = 0


def without_events(prompt: str) -> str:
    """A prompt without what the daemon tells of earlier work, which names tasks and begins none."""
    return _EVENT.sub("", prompt).rstrip("\n") if _EVENT.search(prompt) else prompt


def heard(prompt: str) -> list[PromptMessage]:
    """The messages a prompt has, in order."""
    return [
        PromptMessage(
            sender=head["sender"],
            text="\n".join([head["text"], *_further_lines(prompt[head.end() + 1 :])]),
            target=head["channel"] or head["sender"],
            start=head.start(),
        )
        for head in _HEAD.finditer(prompt)
    ]


def meant(prompt: str, position: int | None, nick: str) -> PromptMessage:
    """The message around a position, else the last one, without the agent's own nick in front."""
    messages = heard(prompt)
    before = [message for message in messages if position is None or message.start <= position]
    found = (before or messages or [PromptMessage("", prompt.removeprefix(_TEAM), "")])[-1]
    return PromptMessage(found.sender, _without_call(found.text, nick), found.target, found.start)


def _further_lines(rest: str) -> Iterator[str]:
    for line in rest.split("\n"):
        if not line.startswith(_MORE):
            return
        yield line.removeprefix(_MORE)


def _without_call(text: str, nick: str) -> str:
    if not nick:
        return text
    names = "|".join(map(re.escape, (nick, nick.partition("-")[2] or nick)))
    return re.sub(rf"^(?:@(?:{names})(?![\w-])[,:]?|(?:{names}):)\s*", "", text, flags=re.IGNORECASE)
