"""What the agent may still spend: it is warned, then it waits, and its channel knows until when."""

from collections.abc import Callable, Iterable
from datetime import datetime

from culture.clients.shared.budget import Level, Quota, Spent, Standing, add, midnight, reset, standing
from culture.clients.shared.inbox import Inbox
from culture.clients.shared.notes import Notes
from culture.config.agents import BudgetConfig
from culture.protocol.vocabulary import UserKey
from culture.runtime import REAL, Runtime


class Purse:
    """Looks after every turn, and within one, whether there is something left."""

    def __init__(
        self,
        budget: BudgetConfig,
        inbox: Inbox,
        notes: Notes,
        tell: Callable[[str], None],
        *,
        runtime: Runtime = REAL,
    ) -> None:
        self._budget = budget
        self._inbox = inbox
        self._notes = notes
        self._tell = tell
        self._now = runtime.local
        self._running = Spent()
        self._has_windows = False
        self._count_what_was_cut_off()

    def _count_what_was_cut_off(self) -> None:
        """The daemon was killed in a turn, whose cost would else be forgotten with every kill."""
        tokens, cost_usd = self._notes.running
        if tokens or cost_usd:
            self._inbox.spend(tokens, cost_usd)
            self._notes.running = (0, 0.0)

    def why_not(self) -> str | None:
        """Why no turn may begin; None when one may."""
        if (until := self._limited_until()) is not None:
            return f"the provider's usage limit is reached; it resets at {until:%Y-%m-%d %H:%M}{self._how()}"
        at = self._standing()
        if at.level is not Level.GONE:
            return None
        return f"the budget is spent ({at.limit}){self._when(at)}"

    def seconds_left(self) -> float | None:
        """How long until it may be otherwise; None when nothing changes by itself."""
        now = self._now()
        if (until := self._limited_until()) is not None:
            return (until - now).total_seconds() if self._resumes else None
        at = self._standing()
        # By the time that was read first: what ends as we look at it has ended, and is not as long again.
        return (_anew(at, now) - now).total_seconds() if at.level is Level.GONE and at.resets else None

    def begin_session(self) -> None:
        """The agent's program was started, perhaps with another login."""
        self._has_windows = False

    def used(self, tokens: int, cost_usd: float = 0.0) -> bool:
        """So much was used in the present turn so far; whether the budget is gone with it."""
        self._running = Spent(tokens, cost_usd)
        self._notes.running = (tokens, cost_usd)
        return self._standing().level is Level.GONE

    def end_turn(self) -> None:
        """Count the present turn no more: from here on the inbox counts it, and both would count it twice."""
        self._running = Spent()

    @property
    def running(self) -> Spent:
        """What the present turn has used so far, which the inbox does not have yet."""
        return self._running

    def told(self, quotas: Iterable[Quota]) -> bool:
        """The provider tells how much of its windows is gone; whether the budget is."""
        self._has_windows = True
        self._notes.quotas = {**self._notes.quotas, **{each.name: each for each in quotas}}
        return self._standing().level is Level.GONE

    def cut_off(self) -> Spent:
        """The present turn will never tell what it used: what is known of it so far."""
        known, self._running = self._running, Spent()
        self._notes.running = (0, 0.0)
        return known

    def look(self, cost_usd: float = 0.0) -> None:
        """After a turn that cost so much: say once a day, or once a window, that little is left, or that nothing is."""
        self._running = Spent()
        self._notes.running = (0, 0.0)
        if cost_usd and not self._has_windows and self._notes.quotas:
            # A subscription would have told of its windows: this login is another, and its money is real.
            self._notes.quotas = {}
        at = self._standing()
        said = f"{at.until or f'{self._now():%Y-%m-%d}'} {at.level.value} {at.limit.rpartition(' of ')[2]}"
        if at.level is Level.FINE or self._notes.budget_told == said or self._limited_until() is not None:
            return
        self._notes.budget_told = said
        if at.level is Level.LOW:
            self._tell(f"[BUDGET] little is left: {at.limit} are used{self._when(at)}.")
        else:
            self._tell(f"[BUDGET] I am parked: {at.limit} are used{self._when(at)}. Messages are kept.")

    def limited(self, until: datetime) -> None:
        """The provider gives nothing more until then."""
        self._notes.limited_until = until.timestamp()
        how = "I go on by myself then" if self._resumes else "say resume then"
        self._tell(f"[BUDGET] I am parked: the provider's usage limit is reached until {until:%Y-%m-%d %H:%M}; {how}.")

    def resume(self) -> None:
        """A person wants to go on; if a limit of the provider still holds the next turn says so."""
        self._notes.limited_until = None
        self._notes.quotas = {name: Quota(name, 0.0, each.resets) for name, each in self._notes.quotas.items()}

    @property
    def is_subscription(self) -> bool:
        """Whether the provider is paid by the month, so that what a turn costs is notional."""
        if self._budget.billing == "auto":
            return bool(self._notes.quotas)
        return self._budget.billing == "subscription"

    @property
    def _resumes(self) -> bool:
        """Whether the agent goes on by itself after a usage limit of the provider."""
        said = self._budget.resume_after_limit
        return self.is_subscription if said is None else said

    @property
    def windows(self) -> list[Quota]:
        """What is known of the windows of a subscription that are not over."""
        now = self._now().timestamp()
        return [each for each in self._notes.quotas.values() if each.resets > now] if self.is_subscription else []

    def figures(self) -> dict[str, str]:
        """What was used today, of how much in a day, and how much of the nearest limit is gone."""
        began = midnight(self._now()).timestamp()
        today, share = add(self._inbox.spent(began), self._running), self._standing().share
        usd = None if self.is_subscription else self._budget.usd_per_day
        found = {
            UserKey.TOKENS.word: str(today.tokens),
            UserKey.COST_USD.word: f"{today.cost_usd:.4f}",
            "budget-tokens": "" if self._budget.tokens_per_day is None else str(self._budget.tokens_per_day),
            "budget-usd": "" if usd is None else f"{usd:g}",
            "budget-pct": "" if share is None else f"{100 * share:.0f}",
            "billing": "subscription" if self.is_subscription else "",
        }
        return {name: said for name, said in found.items() if said}

    def _limited_until(self) -> datetime | None:
        said = self._notes.limited_until
        if said is None:
            return None
        until = datetime.fromtimestamp(said).astimezone()
        return None if until <= self._now() and self._resumes else until

    def _how(self) -> str:
        return "" if self._resumes else ", and I go on when a person says resume"

    def _standing(self, running: Spent | None = None) -> Standing:
        """With what the present turn has used so far, unless told otherwise."""
        began, now = midnight(self._now()).timestamp(), self._running if running is None else running
        today, ever = self._inbox.spent(began), self._inbox.spent_ever()
        quotas = self.windows if self.is_subscription else None
        return standing(self._budget, add(today, now), add(ever, now), quotas)

    def _when(self, at: Standing) -> str:
        return (
            f"; it begins anew at {_anew(at, self._now()):%Y-%m-%d %H:%M}" if at.resets else "; raise it in agents.yaml"
        )


def _anew(at: Standing, now: datetime) -> datetime:
    return reset(now) if at.until is None else datetime.fromtimestamp(at.until).astimezone()
