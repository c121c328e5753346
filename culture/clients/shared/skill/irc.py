"""The agent's tools as functions; what the supervisor whispered stands before the text they return."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from culture.clients.shared.ipc import Whisper
from culture.clients.shared.skill import shown
from culture.clients.shared.skill.call import PATIENCE, CallFailed, call, own_nick, patience_for
from culture.clients.shared.skill.directory import NoDirectory, instructions

__all__ = [
    "AskedBack",
    "IRCFailed",
    "clear_context",
    "compact_context",
    "irc_ask",
    "irc_ask_again",
    "irc_channels",
    "irc_join",
    "irc_part",
    "irc_read",
    "irc_search",
    "irc_send",
    "irc_who",
    "set_directory",
    "spawn_agent",
]


class IRCFailed(Exception):
    """It could not be done; the text says why."""


class AskedBack(IRCFailed):
    """Somebody asks back about a question that waits: ``irc_ask_again(question, reply)`` answers and waits on."""

    def __init__(self, text: str, question: str) -> None:
        super().__init__(text)
        self.question = question


# What was whispered, until a text is returned that it can stand before.
_heard: list[Whisper] = []


def irc_send(channel: str, message: str) -> str:
    """Say something in a channel or to a nick."""
    _call("irc_send", channel=channel, message=message)
    return _told(f"Sent to {channel}.")


def irc_read(channel: str, limit: int = 50) -> str:
    """What was said there since the last time, oldest first, at most ``limit`` messages."""
    return _told(shown.messages(_call("irc_read", channel=channel, limit=limit), channel))


def irc_search(channel: str, text: str, meaning: bool = False, limit: int = 20) -> str:
    """What was ever said there with all these words, oldest first; with ``meaning`` what comes nearest, best first."""
    found = _call("irc_search", channel=channel, text=text, meaning=meaning, limit=limit)
    return _told(shown.found(found, channel))


def irc_ask(channel: str, question: str, timeout: float | None = 300) -> str | None:
    """Ask and wait for the answer; None when nobody answered in time, or has not yet when the call has to return.

    Then standard error says so: the question stays open, and its answer comes as a prompt.
    With ``timeout=None`` the daemon's own settings say how long that is. IRCFailed when it was denied or aborted,
    AskedBack when somebody asks back first.
    """
    fields = {} if timeout is None else {"timeout": timeout}
    return _end(_call("irc_ask", patience_for(timeout), channel=channel, question=question, **fields))


def irc_ask_again(question: str, reply: str = "") -> str | None:
    """Say something to who asked back, and wait on for a question, such as ``q7``; ends as ``irc_ask`` does."""
    return _end(_call("irc_ask", None, again=question, **({"reply": reply} if reply else {})))


def _end(answer: Mapping[str, Any]) -> str | None:
    match answer["outcome"]:
        case "ANSWERED":
            return _told(answer["text"])
        case "TIMED_OUT":
            return None
        case "ASKED":
            print(f"irc: {shown.no_answer(answer)}", file=sys.stderr)
            return None
        case "INTERROGATED":
            raise AskedBack(_told(f"{answer['by']} ({answer['class']}): {answer['text']}"), answer["question"])
        case outcome:
            raise IRCFailed(_told(f"{outcome}: {answer['text'] or 'no reason was given'}"))


def irc_join(channel: str) -> str:
    """Enter a channel; what is said there is kept for you."""
    _call("irc_join", channel=channel)
    return _told(f"In {channel}.")


def irc_part(channel: str) -> str:
    """Leave a channel."""
    _call("irc_part", channel=channel)
    return _told(f"Left {channel}.")


def irc_channels() -> str:
    """The channels you are in, with the number of members."""
    return _told(shown.channels(_call("irc_channels")))


def irc_who(channel: str) -> str:
    """Who is in a channel, with modes, or who a nick is."""
    return _told(shown.people(_call("irc_who", channel=channel), channel))


def spawn_agent(role: str, text: str, timeout: float | None = None) -> str:
    """Have your team hire another agent, such as an ``implementer``, for a part of your task."""
    fields = {} if timeout is None else {"timeout": timeout}
    return _told(shown.hired(_call("spawn_agent", patience_for(timeout), role=role, text=text, **fields)))


def set_directory(path: str) -> str:
    """The instructions of another folder; your conversation goes on, ``cd`` there yourself."""
    try:
        return _told(shown.directory(instructions(Path(path))))
    except NoDirectory as wrong:
        raise IRCFailed(str(wrong)) from None


def compact_context() -> str:
    """Have your context compacted when this turn is over."""
    _call("compact")
    return _told("Your context will be compacted when this turn is over.")


def clear_context() -> str:
    """Have your conversation cleared when this turn is over; IRC is not affected."""
    _call("clear")
    return _told("Your conversation will be cleared when this turn is over.")


def _call(type: str, patience: float | None = PATIENCE, **fields: object) -> Any:
    try:
        return call(own_nick(), type, fields, hear=_heard.append, patience=patience)
    except CallFailed as failed:
        raise IRCFailed(_told(str(failed))) from None


def _told(text: str) -> str:
    whispers = [shown.whisper(whisper) for whisper in _heard]
    _heard.clear()
    return "\n".join([*whispers, text])
