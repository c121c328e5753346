"""What comes from the agent: its words, its turns, its crashes and its silence."""

import logging
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any

from culture.clients.shared.budget import Quota
from culture.clients.shared.condition import may_begin, show
from culture.clients.shared.parts import Parts
from culture.clients.shared.service import Service
from culture.clients.shared.turn import News, Turn
from culture.clients.shared.webhook import texts
from culture.protocol.vocabulary import AgentState

log = logging.getLogger(__name__)


class Minding:
    """Listens to the keeper, and tells the parts that it concerns."""

    def __init__(
        self,
        parts: Parts,
        service: Service,
        observe: Callable[[dict[str, Any]], None],
        over: Callable[[Turn], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._parts = parts
        self._service = service
        self._observe = observe
        self._over = over
        self._spawn = spawn
        self._overspent = False
        self._broke_off = False  # because of that
        self._itself = False  # its program has begun a turn that nobody asked for

    async def on_message(self, message: dict[str, Any]) -> None:
        """The agent said, thought or called something."""
        self._service.last_active = self._parts.runtime.utc()
        self._parts.loops.did(message.get("content", ()))
        self._parts.work.did(message.get("content", ()))
        # A result of one tool is not the end of those that run beside it.
        goes_on = any(block.get("type") != "tool_result" for block in message.get("content", ()))
        if goes_on and (self._overspent or self._service.breaks_off) and (self._parts.work.busy or self._itself):
            # The tool call that was running is over, as the agent goes on.
            # Who pauses a team's member tells it to go on as well; what its own budget cuts off comes again.
            self._broke_off = self._overspent and not self._service.breaks_off
            if not self._broke_off:
                self._parts.work.cut_off("you were paused")
            self._overspent = self._service.breaks_off = False
            self._spawn(self._parts.keeper.interrupt())
        self._observe(message)

    async def on_turn(self, turn: Turn) -> None:
        """A turn is over."""
        if turn.context_pct is not None:
            self._service.context_pct = turn.context_pct
        self._over(turn)
        broke_off, self._broke_off = self._broke_off, False
        self._overspent = self._service.breaks_off = False
        try:
            if turn.limited_until is not None:
                self._parts.purse.limited(datetime.fromtimestamp(turn.limited_until).astimezone())
            if turn.compacted and (note := self._parts.questions.note()):
                self._parts.work.tell(note)
        finally:
            # Whatever cannot be noted: work that does not know of the end would wait for it for ever.
            self._parts.purse.end_turn()
            await self._parts.work.ended(turn, overspent=broke_off)
        self._parts.purse.look(turn.cost_usd)
        self._service.note_usage()
        self._parts.questions.turn_over()
        self._parts.presence.note(self._service.figures())
        self._parts.reporting.wake()

    def on_usage(self, tokens: int, cost_usd: float) -> None:
        """The present turn has used so much so far."""
        self._overspent = self._parts.purse.used(tokens, cost_usd)
        self._service.note_usage()

    def on_quotas(self, quotas: Sequence[Quota]) -> None:
        """The provider told how much of a subscription's windows is gone."""
        self._overspent = self._parts.purse.told(quotas)
        if not self._parts.work.busy:
            self._parts.purse.look()
            show(self._parts)
            self._parts.work.wake()

    def on_news(self, news: News) -> None:
        """The program would begin a turn by itself: its news waits as mail, and comes when the agent may work."""
        held = self._parts.loops.stood_down(news.place)
        self._parts.inbox.news(news.key, news.place, news.text, held=held)
        self._parts.reporting.wake()
        self._parts.work.wake()

    def on_own_turn(self) -> bool:
        """The program begins a turn by itself, and cannot be asked before; whether it may go on."""
        self._itself = True
        log.info("%s: its program begins a turn by itself", self._parts.config.nick)
        return may_begin(self._parts) and not self._parts.notes.stood_down

    def on_own_end(self, turn: Turn) -> None:
        """Such a turn is over, and is noted as a turn."""
        self._itself = self._overspent = False
        self._parts.inbox.begun_itself("cut off" if turn.interrupted else "done", turn.tokens, turn.cost_usd)
        self._parts.purse.look(turn.cost_usd)
        self._service.note_usage()
        self._parts.presence.note(self._service.figures())
        show(self._parts)

    def on_beside(self, tokens: int) -> bool:
        """Sub-agents have used so much between two turns, which counts with the last; whether the budget is gone."""
        self._parts.inbox.spend(tokens, 0.0)
        self._parts.purse.look()
        self._service.note_usage()
        return self._parts.purse.why_not() is not None

    def on_crash(self, code: int, restart_in: float | None) -> None:
        """The agent died."""
        nick, target = self._parts.config.nick, self._parts.work.prompt.target if self._parts.work.prompt else None
        then = "parked" if restart_in is None else f"starts again in {restart_in:g} s"
        log.error("%s: its process exited with code %d; %s", nick, code, then)
        self._parts.webhook.fire("agent_error", texts.crashed(nick, code), place=target)
        if restart_in is None:
            crashes, window = self._parts.config.recovery.crashes, self._parts.config.recovery.window
            self._parts.webhook.fire("agent_error", texts.parked(nick, crashes, window), place=target)
        try:
            spent = self._parts.purse.cut_off()
            self._parts.inbox.spend(spent.tokens, spent.cost_usd)
        finally:
            # As at the end of a turn.
            self._parts.work.broken(f"crashed with code {code}")
        if target is not None:
            later = (
                f"I start again in {restart_in:g} s" if restart_in is not None else "I am parked until you say resume"
            )
            self._parts.outbox.say(
                target, f"[ERROR] my process exited with code {code}; {later}. Nothing is lost.", notice=True
            )
        self._parts.presence.show(
            AgentState.CRASHED if restart_in is not None else AgentState.PARKED, why=f"exit code {code}"
        )

    def on_unable(self, why: str) -> None:
        """The agent cannot be started again until somebody has seen to it."""
        nick = self._parts.config.nick
        log.error("%s is parked: %s", nick, why)
        self._parts.webhook.fire("agent_error", texts.unable(nick, why))
        self._parts.presence.show(AgentState.PARKED, why=why)

    def on_ready(self, resumed: bool) -> None:
        """The agent takes prompts."""
        self._parts.purse.begin_session()
        if not resumed:
            self._service.context_pct = None
        if self._parts.presence.state is AgentState.CRASHED:
            how = "in the same session" if resumed else "in a new session: what you knew of the conversation is gone"
            self._parts.work.tell(f"(your process had ended and was started again, {how})")
        show(self._parts)
        self._parts.work.wake()

    def on_silence(self, seconds: float) -> None:
        """The turn hangs."""
        if self._parts.work.prompt is not None:
            self._parts.work.cut_off(f"you gave no sign of life for {seconds:.0f} s")
            text = f"[ERROR] no sign of life for {seconds:.0f} s; I break off."
            self._parts.outbox.say(self._parts.work.prompt.target, text, notice=True)
