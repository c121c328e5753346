"""What is posted, for each kind of receiver: calm text that fits, calls nobody and formats nothing."""

import json
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from culture.clients.shared.webhook.alerts import Bundle, Severity
from culture.config.agents import AlertEvent
from culture.lib.ssrf_guard import HttpTarget, TargetRefused

Kind = Literal["discord", "slack", "ntfy", "json"]

_DISCORD = frozenset({"discord.com", "discordapp.com", "canary.discord.com", "ptb.discord.com"})
_SLACK = frozenset({"hooks.slack.com", "hooks.slack-gov.com"})
_SUPPRESS_EMBEDS = 4
_PRIORITY = {Severity.INFO: 3, Severity.WARNING: 4, Severity.ERROR: 5}
_NTFY_TAG: Mapping[AlertEvent, str] = {
    "agent_question": "question",
    "agent_spiraling": "cyclone",
    "agent_timeout": "hourglass",
    "agent_error": "rotating_light",
    "agent_complete": "white_check_mark",
}


@dataclass(frozen=True, slots=True)
class Style:
    """How a receiver reads text."""

    longest: int
    size: Callable[[str], int]
    table: Mapping[int, str]
    """What its special characters become."""
    link: str = "{}"
    """How a link is written so that it is only a link."""

    def calm(self, text: str) -> str:
        """The text such that it does nothing but be read."""
        return text.translate(self.table)


def _utf8(text: str) -> int:
    return len(text.encode())


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


_AT = {ord("@"): "@\u200b"}
STYLES: Mapping[Kind, Style] = {
    "discord": Style(2000, _utf16, _AT | {ord(c): f"\\{c}" for c in "\\*_~`|[]()<>"}, "<{}>"),
    "slack": Style(3000, _utf16, _AT | {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}, "<{}>"),
    "ntfy": Style(4096, _utf8, {}),
    "json": Style(4096, _utf8, {}),
}


_WITH_LINK: frozenset[Kind] = frozenset({"discord", "slack"})
"""The receivers that have no field for the link of a question."""


def kind_of(host: str) -> Kind:
    """The receiver, by its host."""
    name = host.lower().rstrip(".")
    if name in _DISCORD:
        return "discord"
    if name in _SLACK:
        return "slack"
    return "ntfy" if name.startswith("ntfy.") else "json"


def text_for(kind: Kind, bundle: Bundle) -> str:
    """The text of the message; what does not fit is cut, with a link to the rest."""
    style = STYLES[kind]
    rest = f"\n{bundle.rest}" if bundle.more else ""
    if bundle.gravest.question and kind in _WITH_LINK:
        rest += f"\n{style.link.format(bundle.gravest.link)}"
    tail = f"… (cut: {style.link.format(bundle.gravest.link)})"
    return _fitted("\n".join(bundle.lines), style, style.longest - style.size(rest), tail) + rest


def fitted(kind: Kind, text: str, tail: str) -> str:
    """Any text as a receiver reads it; what does not fit is cut, and ``tail`` says so."""
    return _fitted(text, STYLES[kind], STYLES[kind].longest, tail)


def _fitted(text: str, style: Style, longest: int, tail: str) -> str:
    whole = style.calm(text)
    if style.size(whole) <= longest:
        return whole
    room = longest - style.size(tail)
    kept = bisect_right(range(len(text) + 1), room, key=lambda end: style.size(style.calm(text[:end]))) - 1
    return style.calm(text[:kept]) + tail


def body_for(kind: Kind, bundle: Bundle, topic: str = "") -> bytes:
    """The JSON to post."""
    return json.dumps(_BODIES[kind](bundle, topic), ensure_ascii=False).encode()


def _discord(bundle: Bundle, topic: str) -> dict[str, object]:
    return {
        "content": text_for("discord", bundle),
        "allowed_mentions": {"parse": []},
        "flags": _SUPPRESS_EMBEDS,
    }


def _slack(bundle: Bundle, topic: str) -> dict[str, object]:
    return {"text": text_for("slack", bundle), "mrkdwn": False, "unfurl_links": False, "unfurl_media": False}


def _ntfy(bundle: Bundle, topic: str) -> dict[str, object]:
    alert = bundle.gravest
    return {
        "topic": topic,
        "title": f"{alert.nick}: {alert.event.removeprefix('agent_')}",
        "message": text_for("ntfy", bundle),
        "priority": _PRIORITY[alert.severity],
        "tags": [_NTFY_TAG[alert.event]],
        "click": alert.link,
    }


def _json(bundle: Bundle, topic: str) -> dict[str, object]:
    alert = bundle.gravest
    return {
        "id": bundle.id,
        "event": alert.event,
        "severity": alert.severity.name.lower(),
        "nick": alert.nick,
        "text": text_for("json", bundle),
        "more": bundle.more,
        "link": alert.link,
        "place": alert.place or None,
        "question": alert.question or None,
        "options": list(alert.options),
        "time": bundle.time,
    }


_BODIES: Mapping[Kind, Callable[[Bundle, str], dict[str, object]]] = {
    "discord": _discord,
    "slack": _slack,
    "ntfy": _ntfy,
    "json": _json,
}


def split_topic(target: HttpTarget) -> tuple[HttpTarget, str]:
    """Where ntfy takes JSON, and the topic that the address names."""
    parts = urlsplit(target.url)
    folder, _, topic = parts.path.rstrip("/").rpartition("/")
    if not topic:
        raise TargetRefused(f"the address at {target} names no topic")
    return HttpTarget.parse(urlunsplit(parts._replace(path=quote(f"{unquote(folder)}/")))), unquote(topic)
