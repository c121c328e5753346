"""What the daemon does for its agent and for those who look after it: the desk behind the socket."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import cast

from culture.clients.shared.budget import Spent, add, midnight
from culture.clients.shared.condition import is_stopped
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
from culture.clients.shared.held import Scope
from culture.clients.shared.parts import Parts
from culture.clients.shared.prompts import Prompt
from culture.clients.shared.questions import NoSuchQuestion, TooManyQuestions
from culture.clients.shared.trust import rules, who_may
from culture.clients.shared.turn import CLEAR, COMPACT
from culture.clients.shared.unfinished_work import TaskReference
from culture.protocol.names import fold, is_channel, nearest
from culture.protocol.text import Profile, clean, name_in_prompt
from culture.protocol.vocabulary import UserKey
from culture.transport import Message, NotSent


class Service:
    """Implements ``Desk`` and what control words act upon."""

    def __init__(
        self, parts: Parts, shut_down: Callable[[], None], show: Callable[[], None], ask_bound: float | None = None
    ) -> None:
        self._parts = parts
        self._ask_bound = ask_bound
        self._shut_down = shut_down
        self._show = show
        self.on_read: Callable[[], None] = lambda: None
        self.on_activity: Callable[[dict[str, object]], None] = lambda turn: None
        self.take_whispers: Callable[[], list[str]] = list
        self.on_release: Callable[[], Awaitable[None]] = _nothing
        """Called when a person lets an agent go on that its supervisor has held."""
        self.context_pct: float | None = None
        self.last_heard: Message | None = None
        self.last_active: datetime | None = None
        """When the agent last said, thought or called something."""
        self.breaks_off = False
        """Whether the turn that runs is to end with the tool call that is running."""
        self._used = asyncio.Event()

    @property
    def is_outside(self) -> bool:
        """Whether the agent sees less of the disk than its daemon."""
        return self._parts.config.sandbox.kind == "bwrap"

    async def send(self, channel: str, text: str) -> Sent:
        """Say it."""
        channel = self._place(channel)
        turn = self._parts.work.turn
        try:
            tags = {**self._parts.work.answers(channel), **self._parts.loops.tags()}
            msgids = await self._parts.once.say_surely(channel, text, tags)
        except NotSent as refusal:
            raise RequestFailed(str(refusal)) from None
        self._parts.work.said(channel, turn)
        return {"channel": channel, "msgids": msgids}

    async def read(self, channel: str, limit: int) -> Read:
        """The oldest that the agent has not read."""
        channel = self._place(channel)
        self.on_read()
        try:
            page = await self._parts.reading.read(channel, limit)
        except NotSent as refusal:
            raise RequestFailed(str(refusal)) from None
        messages = [_as_read(message) for message in page.messages]
        return {"messages": messages, "remaining": page.remaining, "withheld": page.withheld}

    async def ask(self, channel: str, question: str, timeout: float | None, options: Sequence[str] = ()) -> Answer:
        """Post a question and wait."""
        channel = self._place(channel)
        try:
            answer = await self._parts.questions.ask(
                channel, question, timeout, options, bound=self._bound(), in_turn=True
            )
        except (NotSent, TooManyQuestions) as refusal:
            raise RequestFailed(str(refusal)) from None
        return cast(Answer, answer.for_agent())

    async def again(self, id: str, reply: str | None) -> Answer:
        """Wait on for a question."""
        try:
            answer = await self._parts.questions.again(id, reply, bound=self._bound(), in_turn=True)
        except (NotSent, NoSuchQuestion) as refusal:
            raise RequestFailed(str(refusal)) from None
        return cast(Answer, answer.for_agent())

    def _bound(self) -> float | None:
        """Seconds that a call waits for an answer: none where it comes from the background, between two turns."""
        is_left_behind = self._parts.keeper.runs_commands and not self._parts.work.busy
        return 0.0 if is_left_behind else self._ask_bound

    async def questions(self, closed: bool) -> list[dict[str, object]]:
        """What the agent has asked."""
        questions, trust = self._parts.questions, self._parts.config.trust
        found = [*questions.open, *(questions.recent if closed else [])]
        data = questions.as_data(found)
        who = [who_may(rules(trust, each.tool), each.electorate) for each in found]
        return [{**each, "who": may} for each, may in zip(data, who, strict=True)]

    async def search(self, channel: str, text: str, by_meaning: bool, limit: int) -> list[Found]:
        """What the server's history has of it."""
        try:
            found = await self._parts.transport.search(channel, text, by_meaning)
        except NotSent as refusal:
            raise RequestFailed(str(refusal)) from None
        visible = self._parts.reading.without_hidden(found)
        return [_as_found(message) for message in (visible[:limit] if by_meaning else visible[-limit:])]

    async def join(self, channel: str) -> None:
        """Enter a channel."""
        try:
            await self._parts.transport.join_channel(channel)
        except NotSent as refusal:
            raise RequestFailed(str(refusal)) from None

    async def part(self, channel: str) -> None:
        """Leave a channel."""
        channel = self._place(channel)
        if fold(channel) == fold(self._parts.webhook.channel):
            raise RequestFailed(f"{channel} is where people hear of your alerts; it is not left")
        try:
            await self._parts.transport.part_channel(channel)
        except NotSent as refusal:
            raise RequestFailed(str(refusal)) from None
        self._parts.buffer.forget(channel)

    async def channels(self) -> list[JoinedChannel]:
        """The channels it is in."""
        transport = self._parts.transport
        return [
            {"channel": name_in_prompt(name), "members": len(transport.members(name))} for name in transport.channels
        ]

    async def who(self, target: str) -> list[Person]:
        """The members of a channel, or one nick."""
        try:
            members = await self._parts.transport.send_who(target)
        except NotSent as refusal:
            raise RequestFailed(str(refusal)) from None
        if not members:
            raise RequestFailed(self._nobody(target))
        return [
            {
                "nick": name_in_prompt(member.nick),
                "modes": member.modes,
                "account": None if member.account is None else name_in_prompt(member.account),
                "class": member.kind.value,
                "away": "away" if member.away else None,
            }
            for member in members
        ]

    async def spawn_agent(self, role: str, text: str, timeout: float | None) -> Hired:
        """Ask for another agent."""
        hired = await self._parts.hiring.ask(role, text, timeout)
        return {**hired, "text": clean(hired["text"], Profile.MODEL)}

    async def compact(self) -> None:
        """Shorten its context."""
        self._parts.work.command(COMPACT)

    async def clear(self) -> None:
        """Begin a new conversation."""
        self._parts.work.command(CLEAR)

    async def pause(self, soon: bool = False, *, by: str = "") -> None:
        """Give the agent nothing more; ``by`` is the person who wants that."""
        if by and not self._parts.notes.paused:
            prompt = self._parts.work.prompt
            task = TaskReference.of(prompt) if prompt is not None else None
            self._parts.unfinished.note(f"{name_in_prompt(by)} paused you", task)
        self._parts.notes.paused = True
        self.breaks_off = soon and self._parts.work.busy
        self._show()

    async def resume(self, why: str = "", *, by: str = "", place: str = "") -> None:
        """Go on, also after so many crashes that it was parked; ``by`` whom, and ``why``, as they said in a place."""
        if is_stopped(self._parts):
            who = name_in_prompt(by) if by else "somebody who looks after you"
            self._parts.unfinished.note(f"{who} let you go on", words=why, place=place)
        self._parts.notes.paused = False
        self.breaks_off = False
        self._parts.purse.resume()
        await self._release()
        await self._parts.keeper.revive()
        self._show()
        self._parts.work.wake()

    async def abort(self) -> str:
        """Break off the present task."""
        # First what is meant by it: until the supervisor is ready again the agent may have come to something else.
        prompt, held = self._parts.work.prompt, self._parts.notes.held
        if prompt is None and held is None:
            return "there is no task to abort."
        if prompt is None:
            self._parts.inbox.discard()
            self._parts.unfinished.discard()
            self._parts.inbox.mark_aborted(held or "")
            said = f'aborted "{held}"; I go on with what is next.'
        else:
            said = await self._break_off(prompt)
        await self._release()
        self._show()
        self._parts.work.wake()
        return said

    async def _break_off(self, prompt: Prompt) -> str:
        self._parts.work.abort()
        self._parts.questions.abandon(prompt.task)
        await self._parts.keeper.interrupt()
        return f'aborted "{prompt.task}".'

    async def _release(self) -> str | None:
        """The supervisor's hold is over; the task it was for, or None when there was none."""
        held, self._parts.notes.held = self._parts.notes.held, None
        if held is not None:
            await self.on_release()
        return held

    async def go_on(self, scope: Scope) -> str:
        """Give the agent what was held back; where no sender is named it may also answer other agents again."""
        mail, said = self._parts.loops.go_on(scope)
        self._show()
        self._parts.work.wake()
        if not mail and not said:
            return f"nothing is held back{' here' if self._parts.held.total else ''}.{self._still_held()}"
        further = f" {said} more can be read now." if said else ""
        return f"going on with {mail} held message{'' if mail == 1 else 's'}.{further}{self._still_held()}"

    def _still_held(self) -> str:
        """What a person can still release, in a sentence; empty where nothing is held."""
        holdings = self._parts.held.holdings
        if not holdings:
            return ""
        who = ", ".join(f"{each.nick} ({each.count})" for each in holdings)
        return f" Still held: {who}. Release a sender with: @{self._parts.config.nick} go on NICK"

    async def stand_down(self) -> str:
        """Its work is finished: only people wake it."""
        self._parts.notes.stood_down = True
        self._show()
        return "standing down: only people wake me, until one of them says go on."

    async def activity(self, content: list[dict[str, object]], hear: bool) -> list[str]:
        """Let the supervisor see it, and hear what it says."""
        if content:
            self.on_activity({"type": "assistant", "model": "", "content": content})
        return self.take_whispers() if hear else []

    async def prompt(self, key: str, text: str | None, place: str | None, wait: bool, timeout: float | None) -> Errand:
        """Give the agent something to do, and perhaps wait for its end."""
        if place is not None:
            place = self._place(place)
        errands = self._parts.errands
        if text is not None and errands.take(key, text, place):
            self._parts.reporting.wake()
            self._parts.work.wake()
        if wait:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await errands.ended(key)
        found = errands.get(key)
        if found is None:
            raise RequestFailed(f"no prompt has the key {key}; text is missing")
        return found

    async def usage(self, since: str | None, timeout: float | None) -> Usage:
        """What was used in all, the present turn included; waits until that is no longer what ``since`` marks."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while (told := self._usage())["mark"] == since:
                    await self._used.wait()
        return told

    def note_usage(self) -> None:
        """What was used has changed."""
        self._used.set()
        self._used = asyncio.Event()

    def _usage(self) -> Usage:
        ever = self._ever()
        mark = f"{ever.tokens} {ever.cost_usd:.6f}"
        return {"tokens_ever": ever.tokens, "cost_usd_ever": round(ever.cost_usd, 6), "mark": mark}

    def _ever(self) -> Spent:
        return add(self._parts.inbox.spent_ever(), self._parts.purse.running)

    def _today(self) -> Spent:
        return add(
            self._parts.inbox.spent(midnight(self._parts.runtime.local()).timestamp()), self._parts.purse.running
        )

    async def shutdown(self) -> None:
        """Begin to stop."""
        self._shut_down()

    async def status(self) -> dict[str, object]:
        """All there is to know, for `culture status`."""
        parts = self._parts
        unread, stale = parts.inbox.counts()
        spent, ever = self._today(), self._ever()
        heard = self.last_heard
        return {
            "nick": parts.config.nick,
            "backend": parts.config.agent,
            "state": parts.presence.state.value,
            "next": parts.presence.then.value if parts.presence.then else None,
            "task": parts.work.prompt.task if parts.work.prompt else None,
            "stuck_on": parts.notes.held,
            "since": parts.presence.since.isoformat(),
            "last_active": self.last_active.isoformat() if self.last_active else None,
            "tokens_today": spent.tokens,
            "cost_usd_today": round(spent.cost_usd, 6),
            "turns_today": spent.turns,
            "tokens_ever": ever.tokens,
            "cost_usd_ever": round(ever.cost_usd, 6),
            "cannot": parts.keeper.cannot,
            "disk": parts.disk.why,
            "budget": parts.purse.why_not(),
            "subscription": parts.purse.is_subscription,
            "windows": [
                {"name": each.name, "used_pct": round(100 * each.used, 1), "resets": _moment(each.resets).isoformat()}
                for each in parts.purse.windows
            ],
            "context_pct": self.context_pct,
            "unread": unread,
            "stale": stale,
            "held": parts.held.total,
            "held_by": [each.as_data() for each in parts.held.holdings],
            "held_dropped": parts.notes.held_dropped,
            "stood_down": parts.notes.stood_down,
            "last_message": {"msgid": heard.msgid, "at": heard.timestamp.isoformat()} if heard else None,
            "connected": parts.transport.connected,
            "ready": parts.keeper.ready,
            "session": parts.notes.session,
            "questions": len(parts.questions.open),
            "webhook": parts.webhook.status(),
            "quiet": parts.work.is_quiet,
            "directory": str(parts.config.directory),
            "channels": list(parts.transport.channels),
        }

    def summary(self) -> str:
        """The status in a line."""
        parts, state = self._parts, self._parts.presence.state
        task = f' on "{parts.work.prompt.task}"' if parts.work.prompt else ""
        unread, _ = parts.inbox.counts()
        since = f"since {parts.presence.since:%H:%M} UTC"
        quiet = "; quiet hours, messages wait" if parts.work.is_quiet else ""
        then = "; pauses after this turn" if parts.presence.then else ""
        disk = f"; cannot write to its disk: {parts.disk.why}" if parts.disk.why else ""
        return f"{state.value}{task} {since}, {unread} unread{quiet}{then}{disk}. {self.spent()}"

    def spent(self) -> str:
        """What today has cost, in a line."""
        spent, purse = self._today(), self._parts.purse
        why, notional = purse.why_not(), " (notional)" if purse.is_subscription else ""
        today = f"Today: {spent.turns} turns, {spent.tokens} tokens, ${spent.cost_usd:.2f}{notional}."
        windows = [
            f"{each.title}: {100 * each.used:.0f} % until {_moment(each.resets).astimezone():%Y-%m-%d %H:%M}."
            for each in purse.windows
        ]
        return " ".join([today, *windows, *([f"{why}."] if why else [])])

    def figures(self) -> dict[UserKey, str]:
        """What today has cost and how full the context is, as metadata."""
        spent = self._today()
        full = "" if self.context_pct is None else f"{self.context_pct:.0f}"
        return {UserKey.TOKENS: str(spent.tokens), UserKey.COST_USD: f"{spent.cost_usd:.4f}", UserKey.CONTEXT_PCT: full}

    def _place(self, told: str) -> str:
        """The nick, or the channel that the agent is in, by its name or as a prompt has that."""
        transport = self._parts.transport
        shown_so = [name for name in transport.channels if name_in_prompt(name) == told]
        if len(shown_so) > 1:
            raise RequestFailed(f"{told} is how {len(shown_so)} of your channels are shown: leave the wrong one first")
        place = shown_so[0] if shown_so else told
        if not is_channel(place) or fold(place) in map(fold, transport.channels):
            return place
        near = nearest(place, transport.channels)
        hint = f"did you mean {near}?" if near else f"join it first: irc_client join '{place}'"
        raise RequestFailed(f"you are not in {place}; {hint}")

    def _nobody(self, target: str) -> str:
        if is_channel(target):
            near = nearest(target, self._parts.transport.channels)
            return f"there is no channel {target} that you can see" + (f"; did you mean {near}?" if near else "")
        known = {
            member.nick for name in self._parts.transport.channels for member in self._parts.transport.members(name)
        }
        near = nearest(target, known)
        return f"nobody is called {target}" + (f"; did you mean {near}?" if near else "")


async def _nothing() -> None:
    """Nobody wants to know."""


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def _as_read(message: Message) -> ReadMessage:
    return {**_as_found(message), "class": message.kind.value}


def _as_found(message: Message) -> Found:
    return {
        "nick": name_in_prompt(message.sender),
        "text": clean(message.text, Profile.MODEL),
        "timestamp": message.timestamp.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "msgid": name_in_prompt(message.msgid),
        "channel": name_in_prompt(message.channel),
    }
