"""A desk without a daemon: it answers what the test put there and notes what was asked."""

import asyncio
from collections.abc import Sequence

from culture.clients.shared.desk import (
    Answer,
    Errand,
    Found,
    Hired,
    JoinedChannel,
    Person,
    Read,
    ReadMessage,
    RequestFailed,
    Sent,
    Usage,
)


def message(nick: str, text: str, channel: str = "#general") -> ReadMessage:
    return {
        "nick": nick,
        "text": text,
        "timestamp": "2026-03-19T10:00:00.000Z",
        "msgid": "spark.e.1",
        "channel": channel,
        "class": "human",
    }


def answered(text: str | None, outcome: str = "ANSWERED") -> Answer:
    by = "spark-ori" if text is not None else None
    return {
        "outcome": outcome,
        "text": text,
        "by": by,
        "account": None,
        "class": "human" if by else None,
        "human_confirmed": False,
        "msgid": "spark.e.2" if by else None,
        "question": "q7",
        "action": None,
    }


class NotedDesk:
    """Implements ``Desk``."""

    is_outside = False

    def __init__(self) -> None:
        self.done: list[tuple[object, ...]] = []
        self.unread: list[ReadMessage] = []
        self.answer = answered("yes, go ahead")
        self.asked = asyncio.Event()
        self.reply: asyncio.Event | None = None

    async def send(self, channel: str, text: str) -> Sent:
        self.done.append(("send", channel, text))
        if channel == "#nowhere":
            raise RequestFailed("you are not in #nowhere; perhaps #general")
        return {"channel": channel, "msgids": ["spark.e.3"]}

    async def read(self, channel: str, limit: int) -> Read:
        self.done.append(("read", channel, limit))
        taken, self.unread = self.unread[:limit], self.unread[limit:]
        return {"messages": taken, "remaining": len(self.unread), "withheld": 0}

    async def search(self, channel: str, text: str, by_meaning: bool, limit: int) -> list[Found]:
        self.done.append(("search", channel, text, by_meaning, limit))
        if text == "nothing":
            return []
        said = message("thor-claude", f"{text}: -DGGML_CUDA=ON", channel)
        return [{key: said[key] for key in Found.__annotations__}]  # type: ignore[misc, literal-required]

    async def ask(self, channel: str, question: str, timeout: float | None, options: Sequence[str] = ()) -> Answer:
        self.done.append(("ask", channel, question, timeout, *options))
        self.asked.set()
        if self.reply is not None:
            await self.reply.wait()
        return self.answer

    async def again(self, id: str, reply: str | None) -> Answer:
        self.done.append(("again", id, reply))
        return self.answer

    async def questions(self, closed: bool) -> list[dict[str, object]]:
        self.done.append(("questions", closed))
        return [{"id": "q7", "text": "really?"}]

    async def join(self, channel: str) -> None:
        self.done.append(("join", channel))

    async def part(self, channel: str) -> None:
        self.done.append(("part", channel))

    async def channels(self) -> list[JoinedChannel]:
        return [{"channel": "#general", "members": 5}, {"channel": "#quiet", "members": 1}]

    async def who(self, target: str) -> list[Person]:
        self.done.append(("who", target))
        return [
            {"nick": "spark-ori", "modes": "o", "account": "ori", "class": "human", "away": None},
            {"nick": "spark-culture", "modes": "", "account": None, "class": "agent", "away": "working"},
        ]

    async def spawn_agent(self, role: str, text: str, timeout: float | None) -> Hired:
        self.done.append(("spawn", role, text, timeout))
        if role == "king":
            raise RequestFailed("'king' is no role; there are implementer")
        return {"nick": "spark-Ada", "role": role, "text": f"hired spark-Ada as {role}"}

    async def compact(self) -> None:
        self.done.append(("compact",))

    async def clear(self) -> None:
        self.done.append(("clear",))

    async def activity(self, content: list[dict[str, object]], hear: bool) -> list[str]:
        self.done.append(("activity", len(content), hear))
        return ["[SUPERVISOR/CORRECTION] Try a different approach"] if hear else []

    async def prompt(self, key: str, text: str | None, place: str | None, wait: bool, timeout: float | None) -> Errand:
        self.done.append(("prompt", key, text, place, wait, timeout))
        return {
            "key": key,
            "outcome": "done" if wait else "waiting",
            "text": "two failures" if wait else "",
            "tokens": 1200 if wait else 0,
            "cost_usd": 0.02 if wait else 0.0,
            "context_pct": 12.5 if wait else None,
            "session": "6f2c" if wait else None,
        }

    async def status(self) -> dict[str, object]:
        return {"nick": "spark-culture", "state": "idle", "paused": False, "task": None, "channels": ["#general"]}

    async def usage(self, since: str | None, timeout: float | None) -> Usage:
        return {"tokens_ever": 1200, "cost_usd_ever": 0.02, "mark": "1200 0.020000"}

    async def pause(self, soon: bool = False) -> None:
        self.done.append(("pause", soon) if soon else ("pause",))

    async def resume(self, why: str = "") -> None:
        self.done.append(("resume", why) if why else ("resume",))

    async def shutdown(self) -> None:
        self.done.append(("shutdown",))
