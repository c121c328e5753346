"""An agent over its lives: a real daemon on a simulated machine, killed and started again on a copy of its disk."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from culture.clients.shared.daemon import AgentDaemon
from culture.clients.shared.supervisor import SupervisorSetup
from culture.clients.shared.turn import RunnerSetup
from culture.clients.shared.vouching import Company
from culture.config.agents import AgentConfig, AgentsConfig, BudgetConfig, RecoveryConfig, SupervisorConfig, TrustConfig
from culture.protocol.names import name_part
from culture.transport import Address, ClientIdentity
from tests.simulation.agents.ledger import Ledger
from tests.simulation.agents.models import Habits, SimJudge, SimModel
from tests.simulation.disk import Disk
from tests.simulation.invariants import Violation
from tests.simulation.servers import PORT, SimServer
from tests.support.in_process import InProcessServer

if TYPE_CHECKING:
    from tests.simulation.world import Host, World

_DAY = 86400


class SimAgent:
    """One agent, its daemon while there is one, and what it has used."""

    def __init__(
        self, world: "World", server: SimServer, nick: str, folder: Path, ledger: Ledger, budget: int | None
    ) -> None:
        """``budget``: the tokens that it may use in a day."""
        self.world, self.server, self.nick, self.ledger = world, server, nick, ledger
        self.machine = world.machine(f"{server.name}-agents")
        world.network.address_of(self.machine.name)
        self.chance = random.Random(f"{world.seed}/model {nick}")
        self.habits = Habits()
        self.others: Sequence[str] = ()
        """The nicks of the other agents."""
        self.trust: TrustConfig | None = None
        self.has_judge = False
        self.budget = budget
        self.host: Host | None = None
        self.daemon: AgentDaemon | None = None
        self.lives = 0
        self.kills: list[float] = []
        self.pause = 1.0
        """Seconds from the end of a life to the start of the next one."""
        self.begun = 0
        """Turns that could have a text."""
        self._spent: dict[int, int] = {}
        self._day = 0
        self._folder = folder

    @property
    def is_ready(self) -> bool:
        """Return whether its daemon is on IRC and takes prompts."""
        return self.daemon is not None and self.daemon.keeper.ready and self.daemon.transport.settled

    def start(self) -> None:
        """Start the daemon, unless it runs."""
        if self.host is None:
            self.host = self.world.boot(self.machine, Disk(self._home))
            self.world.note("start", self.nick)
            self.host.start(self._run(self.host))

    @property
    def _home(self) -> Path:
        return self._folder / str(self.lives)

    async def _run(self, host: "Host") -> None:
        config, account = self._config(), name_part(self.nick)
        judge = SimJudge(SupervisorSetup(self.nick, self._home, runtime=host.runtime, token="judge"), self)
        daemon = AgentDaemon(
            config,
            Address(self.server.address, PORT),
            ClientIdentity(self.nick, account, f"token of {account}", f"{self.nick} (scripted)"),
            lambda agent, session, token: SimModel(RunnerSetup(self.nick, self._home), self, session),
            supervisor=judge if self.has_judge else None,
            company=Company(AgentsConfig(agents=(config,))),
            inbox_file=self._home / "inbox.db",
            socket_server=InProcessServer,
            end_processes=_end_nothing,
            runtime=host.runtime,
        )
        self.daemon = daemon
        await daemon.start()
        await daemon.finished.wait()
        self.ledger.wrong.append(Violation("ended", f"the daemon of {self.nick} ended by itself: {daemon.hopeless}"))

    def _config(self) -> AgentConfig:
        return AgentConfig(
            nick=self.nick,
            directory=str(self._folder),  # type: ignore[arg-type]
            channels=("#x",),
            agent="scripted",
            budget=BudgetConfig(tokens_per_day=self.budget),
            recovery=RecoveryConfig(restart_delay=3.0, silence=240.0),
            supervisor=SupervisorConfig(eval_interval=5),
            trust=self.trust,
        )

    def kill(self) -> None:
        """End the daemon and its model by ``kill -9``."""
        self.kills.append(self.world.now)
        self._end("kill")

    def stop(self) -> None:
        """Stop the daemon as ``culture stop`` does; it starts again after its pause."""
        if self.daemon is None or self.host is None:
            return
        self.world.note("stop", self.nick)
        daemon, host = self.daemon, self.host

        async def leave() -> None:
            await daemon.stop()
            self.world.after_step.append(lambda: self.host is host and self._end("stopped"))

        host.start(leave())

    def _end(self, kind: str) -> None:
        host = self.host
        if host is None:
            return
        assert host.disk is not None
        self.world.note(kind, self.nick)
        self.host = self.daemon = None
        self.lives += 1
        host.disk.copy(self._home, False, self.chance)
        self.world.end(host, with_power=False)
        host.disk.close()
        self.world.call_later(self.pause, self.start)

    def new_text(self, verb: str) -> str:
        """Return words that nobody has said before."""
        self.begun += 1
        return f"{self.nick} {verb} {self.begun}"

    # What its model has used, by its own account.

    def spend(self, tokens: int) -> None:
        """Count what a model uses, for the day on which its turn began."""
        self._spent[self._day] = self._spent.get(self._day, 0) + tokens

    @property
    def spent(self) -> int:
        """Return the tokens of all days."""
        return sum(self._spent.values())

    @property
    def is_overspent(self) -> bool:
        """Return whether nothing is left of the budget of today."""
        return self.budget is not None and self._spent.get(self._day, 0) >= self.budget

    def check_budget(self) -> None:
        """Begin to count a turn; note it if nothing was left for it."""
        assert self.host is not None
        self._day = int(self.host.runtime.now() // _DAY)
        if self.is_overspent:
            spent = self._spent[self._day]
            self.ledger.wrong.append(Violation("budget", f"{self.nick} begins a turn after {spent} of {self.budget}"))

    def why_busy(self) -> str:
        """Return why the agent has not come to rest yet; empty when it has."""
        daemon = self.daemon
        if daemon is None or not self.is_ready:
            return "down"
        checks = {
            "paused": daemon.notes.paused,
            "held by its supervisor": daemon.notes.held is not None,
            "over budget": daemon.purse.why_not() is not None,
            "busy": daemon.work.busy,
            "unread": daemon.inbox.counts()[0] > 0,
            "loop guard": daemon.inbox.held() > 0,
            "asks": bool(daemon.questions.open),
            "outbox": daemon.records.execute("SELECT count(*) FROM outbox").fetchone()[0] > 0,
        }
        return ", ".join(name for name, is_so in checks.items() if is_so)


async def _end_nothing(token: str, grace: float = 0.0) -> int:
    """End no processes: the model is in this one."""
    return 0
