"""AgentDaemon: the parts around one agent, put together, started and stopped in order."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from culture.clients.shared.agentfacts import AgentFacts
from culture.clients.shared.background import NOWHERE
from culture.clients.shared.base import AgentRunnerBase, SupervisorBase
from culture.clients.shared.bus import MessageBus
from culture.clients.shared.completion import Completion
from culture.clients.shared.condition import may_begin, show
from culture.clients.shared.disk_trouble import DiskTrouble
from culture.clients.shared.errands import Errands
from culture.clients.shared.greeting import Greeting
from culture.clients.shared.hearing import Hearing
from culture.clients.shared.held import HeldMail
from culture.clients.shared.hiring import Hiring
from culture.clients.shared.inbox import Inbox
from culture.clients.shared.keeper import EndProcesses, Keeper
from culture.clients.shared.loopguard import LoopGuard
from culture.clients.shared.mail_replies import given_up, reply_to
from culture.clients.shared.message_buffer import MessageBuffer
from culture.clients.shared.minding import Minding
from culture.clients.shared.notes import Notes
from culture.clients.shared.once import Once
from culture.clients.shared.outbox import Outbox
from culture.clients.shared.parts import Parts
from culture.clients.shared.presence import Presence
from culture.clients.shared.prompts import Prompt
from culture.clients.shared.purse import Purse
from culture.clients.shared.questions import Answer, Question, Questions, QuestionStore
from culture.clients.shared.questions.around import Around
from culture.clients.shared.questions.elicitation import Elicitation
from culture.clients.shared.questions.leave import Leave
from culture.clients.shared.queued import QueuedRunner
from culture.clients.shared.reading import Reading
from culture.clients.shared.records import Records
from culture.clients.shared.recovery import Recovery
from culture.clients.shared.reporting import Reporting
from culture.clients.shared.requests import answer, is_agents_own, is_for_people
from culture.clients.shared.rooms import Rooms
from culture.clients.shared.sandbox.gate import NetworkGate
from culture.clients.shared.service import Service
from culture.clients.shared.socket_server import SocketServer
from culture.clients.shared.supervision import Around as AroundSupervision
from culture.clients.shared.supervision import Given, Supervision
from culture.clients.shared.supervisor import Supervisor
from culture.clients.shared.unfinished_work import TaskReference, UnfinishedWork
from culture.clients.shared.vouching import Company, Vouching
from culture.clients.shared.watchdog import AGENT, SUPERVISOR
from culture.clients.shared.webhook import WebhookClient, texts
from culture.clients.shared.work import AGAIN, Work
from culture.config import paths
from culture.config.agents import AgentConfig, AgentsConfig
from culture.lib.process.orphans import end_all
from culture.protocol.message import Message as Line
from culture.protocol.names import fold
from culture.protocol.vocabulary import ClientTag, UserKey
from culture.runtime import REAL, Runtime
from culture.transport import (
    Address,
    ChannelMember,
    ClientIdentity,
    ConnectionState,
    IRCTransport,
    Message,
    ReceiveMark,
)

log = logging.getLogger(__name__)

MakeRunner = Callable[[AgentConfig, str | None, str], AgentRunnerBase]
"""A runner for an agent, from the session to take up again and the token for its processes."""


class AgentDaemon:
    """One agent on IRC. ``finished`` is set when it was told to shut down."""

    def __init__(
        self,
        config: AgentConfig,
        address: Address,
        identity: ClientIdentity,
        make_runner: MakeRunner,
        *,
        may_call_all: Callable[[str], bool] = lambda nick: False,
        supervisor: SupervisorBase | None = None,
        no_supervisor: str = "",
        company: Company | None = None,
        gate: NetworkGate | None = None,
        ask_bound: float | None = None,
        page: str | None = None,
        inbox_file: Path | None = None,
        socket_server: Callable[..., SocketServer] = SocketServer,
        end_processes: EndProcesses = end_all,
        runtime: Runtime = REAL,
    ) -> None:
        """Make the parts of the daemon, which ``start`` starts.

        ``inbox_file``, ``socket_server`` and ``end_processes`` are what it uses of the machine beside the runtime;
        the simulator passes its own.
        """
        self.config = config
        self.finished = asyncio.Event()
        self.gate = gate
        self.hopeless = ""
        """Why the server will never have it back, where it said so."""
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._end_processes = end_processes
        self._judge_token = supervisor.setup.token if isinstance(supervisor, Supervisor) else None
        recovery = config.recovery
        company = company or Company(AgentsConfig(agents=(config,)))

        self.records = Records(inbox_file or paths.inbox_file(config.nick), runtime=runtime)
        self.notes = Notes(self.records)
        self.inbox = Inbox(self.records, self.notes, runtime=runtime)
        self.unfinished = UnfinishedWork(self.notes, runtime.now)
        self.errands = Errands(self.records, self.inbox, self.notes, runtime=runtime)
        self.buffer = MessageBuffer(config.buffer_size)
        self.transport = IRCTransport(
            address,
            identity,
            self._channels(),
            cursor=self,
            on_message=self._on_message,
            on_state=self._on_state,
            on_invite=self._on_invite,
            on_arrival=lambda channel, nick: self.greeting.arrived(channel, nick),
            on_line=self._on_line,
            agents=company.agents,
            people=company.people,
            runtime=runtime,
        )
        self.held = HeldMail(self.records, self.notes)
        self.vouching = Vouching(config.wake, self.transport, company.agents)
        self.notes.has_gap = lambda: self.transport.is_behind
        self.once = Once(config.nick, self.records, self.transport, runtime=runtime)
        self.outbox = Outbox(self.records, self.transport, self.once, runtime=runtime)
        self.greeting = Greeting(config.greeting, self.transport, self.notes, self.outbox.say, self._spawn)
        self.bus = MessageBus()
        self.webhook = WebhookClient(
            config.webhooks,
            self.outbox.say,
            nick=config.nick,
            bus=self.bus,
            records=self.records,
            server=f"{'ircs' if address.tls else 'irc'}://{address.host}:{address.port}",
            page=page,
            runtime=runtime,
        )
        self.presence = Presence(self.transport, runtime=runtime)
        self.reading = Reading(self.buffer, self.notes, self.transport, self.held, self._is_hidden)
        self.held.show = self.reading.show
        around = Around(
            self.transport,
            self.once,
            self.outbox.say,
            self.webhook.fire,
            self._show,
            self._task,
            self._on_no_answer,
            self.inbox.take_about,
            self.inbox.read,
            self._on_unheard,
            self._on_news,
            lambda text: self.socket.whisper("CORRECTION", text) if self.work.busy else None,
            lambda: self.loops.tags(),
            self._on_aborted,
        )
        asked = QuestionStore(self.records, runtime=runtime)
        self.questions = Questions(config.nick, asked, around, config.trust)
        facts = AgentFacts(self.records, self.transport, asked, config.trust)
        self.reporting = Reporting(self.records, self.transport, facts, self._state_told, self._counts, runtime=runtime)
        self.webhook.noted = self.reporting.alert
        self.leave = Leave(
            self.questions,
            self.notes,
            config.directory,
            lambda: self.work.prompt,
            lambda: list(self.transport.channels),
        )
        self.rooms = Rooms(
            self.transport, config.tags, join=config.join_matching, vouched=lambda by: self.vouching.why_not(by) is None
        )
        breaker = Recovery(
            recovery.restart_delay, recovery.crashes, recovery.window, always_fresh=config.on_crash == "fresh"
        )
        self.keeper = Keeper(
            config.nick,
            lambda session, token: self._made(make_runner(config, session, token)),
            self.notes,
            breaker,
            recovery,
            end_processes=end_processes,
            runtime=runtime,
        )
        self.loops = LoopGuard(
            config, self.inbox, self.held, self.notes, self.transport, self.outbox.say, runtime=runtime
        )
        self.hiring = Hiring(config.team, self.transport, self.loops.tags)
        self.purse = Purse(config.budget, self.inbox, self.notes, self._tell_of_budget, runtime=runtime)
        self.work = Work(
            config.nick,
            self.inbox,
            self.keeper,
            self.outbox.say,
            post_output=config.post_output,
            quiet_hours=config.quiet_hours,
            retry_after=recovery.restart_delay,
            cool_down=config.cool_down,
            may_begin=lambda: may_begin(self._parts),
            until=self.purse.seconds_left,
            changed=self._show,
            begun=self.loops.begin,
            tags=self.loops.tags,
            renew=self.keeper.renew,
            further=lambda: self.supervision.begin(),
            answered=self.errands.answered,
            completion=Completion(
                self.unfinished,
                self._announce,
                open_questions=lambda: self.questions.open,
                question=asked.get,
                unread_in=self.inbox.unread_in,
                in_background=self.keeper.in_background,
                is_held=lambda: self.notes.held is not None,
                note=lambda: self.questions.note(),
            ),
            runtime=runtime,
        )
        self._parts = Parts(
            config,
            self.transport,
            self.notes,
            self.inbox,
            self.buffer,
            self.reading,
            self.questions,
            self.presence,
            self.keeper,
            self.work,
            self.webhook,
            self.loops,
            self.purse,
            self.outbox,
            self.reporting,
            self.errands,
            self.hiring,
            self.once,
            self.held,
            self.vouching,
            self.unfinished,
            DiskTrouble(config.nick, self.records, self.transport, self.webhook),
            runtime,
        )
        self.service = Service(self._parts, self.finished.set, self._show, ask_bound)
        self.socket: SocketServer = socket_server(
            paths.agent_socket(config.nick),
            self._request,
            carries=is_agents_own,
            for_people=is_for_people,
            alias=paths.socket_alias(config.nick),
            unheard=lambda answer: self.questions.unheard(Answer.of_data(cast(Mapping[str, Any], answer))),
            runtime=runtime,
        )
        self.supervision = Supervision(
            config.nick,
            config.supervisor,
            supervisor,
            self._around_supervision(),
            missing=no_supervisor,
            runtime=runtime,
        )
        self._turns = self.bus.lane("supervisor", self.supervision.observe)
        self.service.on_read = self.supervision.read
        self.service.on_activity = self._turns.put
        self.service.take_whispers = self.supervision.take
        self.service.on_release = self.supervision.again
        self.hearing = Hearing(self._parts, self.service, may_call_all, self._spawn)
        self.minding = Minding(self._parts, self.service, self._turns.put, self.supervision.ended, self._spawn)
        self.keeper.watch(self.minding, lambda: self.questions.waiting > 0)

    def watch_over(self, watch: Callable[[str, str | None], None]) -> None:
        """Tell ``watch`` the token of the processes that must end with the daemon, whenever there is a new one."""
        self.keeper.on_token = lambda token: watch(AGENT, token)
        watch(SUPERVISOR, self._judge_token)

    def _state_told(self) -> dict[str, str]:
        """What the ledger is told of the agent's state; nothing before there is one."""
        shown = self.presence.facts
        stood_down = {"stood-down": "yes"} if self.notes.stood_down else {}
        return {**shown, **self.purse.figures(), **stood_down} if UserKey.STATE.word in shown else {}

    def _counts(self) -> dict[str, Any]:
        """What waits for the agent, as the ledger is told."""
        unread, stale = self.inbox.counts()
        held = {"held": self.held.total, "held-by": [each.as_data() for each in self.held.holdings]}
        return {"unread": unread, "stale": stale, **(held if held["held"] else {})}

    def _channels(self) -> list[str]:
        """Those of the configuration, and the one for alerts, which is joined before the first alert."""
        alerts = self.config.webhooks.irc_channel
        return [*self.config.channels, *([alerts] if fold(alerts) not in map(fold, self.config.channels) else [])]

    async def start(self) -> None:
        """Buffer, IRC, webhook, socket, supervisor, runner."""
        self._tell_lost()
        self.reading.restore(self.config.channels, [mail for mail in self.inbox.unread() if not mail.is_errand])
        self.held.show_unread()
        await self.transport.start()
        self.presence.start()
        self.presence.note({UserKey.BACKEND: self.config.agent, UserKey.TAGS: ",".join(self.config.tags)})
        self.outbox.start()
        self.reporting.start()
        await self.webhook.start()
        await self.socket.start()
        if self.gate is not None:
            await self.gate.start()
        self.bus.start()
        await self._reap_judge()
        await self.supervision.start()
        await self.keeper.start()
        self.work.start()
        self._show()
        self.work.wake()

    async def stop(self, reason: str = "stopped") -> None:
        """Runner, supervisor, socket, IRC; what was being worked on comes again at the next start."""
        await self.work.stop()
        # At once: each may have to wait for a program that hangs, or for a server.
        await asyncio.gather(self.keeper.stop(), self.supervision.stop(), self.webhook.stop())
        await self.bus.stop()
        await self._parts.disk.stop()
        await self.socket.stop()
        if self.gate is not None:
            await self.gate.stop()
        self.questions.stop()
        await self.rooms.stop()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.reporting.stop()
        await self.outbox.stop()
        await self.presence.stop()
        await self.transport.stop(reason)
        self.records.close()

    # The transport's cursor.

    def load(self) -> ReceiveMark | None:
        """How far everything was received."""
        return self.notes.mark()

    def knows(self, msgid: str) -> bool:
        """Whether this message was received."""
        return self.inbox.knows(msgid) or self.held.knows(msgid)

    # What comes from IRC.

    def _on_state(self, condition: ConnectionState, why: str) -> None:
        log.info("%s: %s%s", self.config.nick, condition.value, f" ({why})" if why and why != condition.value else "")
        if condition is ConnectionState.CONNECTED:
            self.notes.begin_at(self.transport.mark)
            self.questions.begin()
            self._spawn(self.questions.post_unposted())
            self.presence.again()
            self.outbox.wake()
            self.reporting.again()
            self.work.wake()
        elif condition is ConnectionState.HOPELESS:
            log.error("%s cannot come back: %s", self.config.nick, why)
            self.hopeless = why
            self.finished.set()

    def _on_message(self, message: Message) -> None:
        self.once.heard(message)
        if self.vouching.is_known(message):
            self.hiring.hear(message)
        self.hearing.on_chat(message)

    def _on_line(self, line: Line) -> None:
        if line.verb == "REDACT" and len(line.params) > 1 and self.held.take_back(line.params[1]):
            self.reporting.wake()

    def _is_hidden(self, message: Message) -> bool:
        """Whether a message from the history is withheld from the agent."""
        if self.vouching.why_not(message) is None or self.held.is_released(message.msgid):
            return False
        is_own = fold(message.sender) == fold(self.config.nick) and self.vouching.is_known(message)
        return not is_own

    def _on_invite(self, channel: str, by: ChannelMember | None) -> None:
        self.rooms.invited(channel, by)

    def _tell_of_budget(self, text: str) -> None:
        """People know it where the work is, and in the channel for alerts."""
        place = self.work.last.target if self.work.last is not None else None
        for where in dict.fromkeys([self.webhook.channel, place]):
            self.outbox.say(where or "", text, notice=True)
        self._show()

    def _tell_lost(self) -> None:
        with self.inbox.at_once():
            if cut := self.inbox.in_turn():
                self.unfinished.note(f"your daemon ended in a turn. {AGAIN}", TaskReference.of_mail(cut[0]))
            for mail in self.inbox.restore():
                said = given_up(mail, "it was cut off too often")
                self.outbox.say(mail.place, said, notice=True, tags=reply_to(mail))

    # What comes from the agent.

    def _announce(self, prompt: Prompt) -> None:
        text = texts.complete(self.config.nick, prompt.task, prompt.target)
        self.webhook.fire("agent_complete", text, place=prompt.target)

    def _on_no_answer(self, action: str, question: Question, awaited: bool) -> None:
        """Nobody answered a question in time: what silence means."""
        task = question.task
        if action == "pause":
            why = f"nobody answered your question {question.id} in time"
            if awaited and task == self._task():
                self.work.leave_open(f"{why}, and you were paused")
            else:
                self.unfinished.note(f"you were paused: {why}", self.unfinished.unfinished(question.place))
            # At once: the news that nobody answered begins no turn before a person says resume.
            self.notes.paused = True
            self._spawn(self.service.pause())
        elif action == "abort" and task == self._task():
            self.work.abort()  # at once: the agent has its answer, and may end the turn before anything else runs
            self._spawn(self.service.abort())
        elif action == "abort":
            self.inbox.mark_aborted(task)

    def _on_aborted(self, task: str) -> None:
        """The answer to a question aborts the task that asked, in the present turn or in one that is over."""
        if task == self._task():
            self.work.mark_aborted()
        else:
            self.inbox.mark_aborted(task)

    def _on_unheard(self, msgid: str, question: int, remark: str) -> None:
        """The call that waited for this message was cut off as it came: the agent reads it instead."""
        self.inbox.reopen(msgid, question, remark)
        self.work.wake()

    def _on_news(self, key: str, place: str, text: str, question: int) -> None:
        """A question has ended without a word of anybody, and no call waits for it."""
        hops = int(self.loops.tags()[ClientTag.HOPS.value])
        self.inbox.news(key, place, text, question=question, hops=hops)
        self.work.wake()

    async def _request(self, request: Any) -> object:
        if is_agents_own(request.type):
            self.keeper.touch()
        return await answer(self.service, request)

    # What comes from the supervisor.

    async def _reap_judge(self) -> None:
        """End what a judgement left behind whose daemon was killed; what this one starts is found by the next."""
        if (left := self.notes.judge_token) is not None:
            await self._end_processes(left)
        self.notes.judge_token = self._judge_token

    def _around_supervision(self) -> AroundSupervision:
        return AroundSupervision(
            ear=self.socket,
            fire=self.webhook.fire,
            say=lambda place, text: self.outbox.say(place, texts.said(text, self.config.nick)),
            channel=self.webhook.channel,
            hold=self._hold,
            think_deeper=self._think_deeper,
            given=self._given,
            has_unread=self._has_unread,
            spent=self.inbox.spend,
            may_spend=lambda: self.purse.why_not() is None,
        )

    def _hold(self, task: str) -> None:
        """Feed nothing more; the present turn ends by itself."""
        if self.notes.held is None and self.work.last is not None:
            self.unfinished.note("your supervisor held you, as you got nowhere", TaskReference.of(self.work.last))
        self.notes.held = task
        self._show()

    def _think_deeper(self) -> None:
        if isinstance(self.keeper.runner, QueuedRunner):
            self.keeper.runner.think_deeper()

    def _given(self) -> Given:
        prompt = self.work.last
        if prompt is None:
            return Given()
        return Given(prompt.task, "\n".join(mail.text for mail in prompt.mails), prompt.target, prompt.mails[0].msgid)

    def _has_unread(self) -> bool:
        """Whether others talk in its channels; what is for the agent itself comes as a prompt."""
        rings = (self.buffer.ring(channel) for channel in self.transport.channels)
        return any(not self.inbox.knows(message.msgid) for ring in rings for message in ring.waiting())

    def _made(self, runner: AgentRunnerBase) -> AgentRunnerBase:
        if isinstance(runner, QueuedRunner):
            runner.take_whispers = self.supervision.take
            runner.permit = self.leave.permit
            runner.consult = Elicitation(self.questions, self.leave.place).ask
            runner.background.moved = self.questions.release_calls
            runner.background.place = lambda: self.work.prompt.target if self.work.prompt is not None else NOWHERE
        return runner

    def _show(self) -> None:
        show(self._parts)

    def _task(self) -> str:
        return self._parts.task

    def _spawn(self, coroutine: Any) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks[task] = None
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s: %s failed", self.config.nick, task.get_coro(), exc_info=error)
