"""The parts of a daemon, for those that work with many of them."""

from dataclasses import dataclass

from culture.clients.shared.disk_trouble import DiskTrouble
from culture.clients.shared.errands import Errands
from culture.clients.shared.held import HeldMail
from culture.clients.shared.hiring import Hiring
from culture.clients.shared.inbox import Inbox
from culture.clients.shared.keeper import Keeper
from culture.clients.shared.loopguard import LoopGuard
from culture.clients.shared.message_buffer import MessageBuffer
from culture.clients.shared.notes import Notes
from culture.clients.shared.once import Once
from culture.clients.shared.outbox import Outbox
from culture.clients.shared.presence import Presence
from culture.clients.shared.purse import Purse
from culture.clients.shared.questions import Questions
from culture.clients.shared.reading import Reading
from culture.clients.shared.reporting import Reporting
from culture.clients.shared.unfinished_work import UnfinishedWork
from culture.clients.shared.vouching import Vouching
from culture.clients.shared.webhook import WebhookClient
from culture.clients.shared.work import Work
from culture.config.agents import AgentConfig
from culture.runtime import Runtime
from culture.transport import IRCTransport


@dataclass(frozen=True, slots=True)
class Parts:
    """All that a daemon is made of, but for what works with it."""

    config: AgentConfig
    transport: IRCTransport
    notes: Notes
    inbox: Inbox
    buffer: MessageBuffer
    reading: Reading
    questions: Questions
    presence: Presence
    keeper: Keeper
    work: Work
    webhook: WebhookClient
    loops: LoopGuard
    purse: Purse
    outbox: Outbox
    reporting: Reporting
    errands: Errands
    hiring: Hiring
    once: Once
    held: HeldMail
    vouching: Vouching
    unfinished: UnfinishedWork
    disk: DiskTrouble
    runtime: Runtime

    @property
    def task(self) -> str:
        """What the agent is working on, as everybody may know it."""
        return self.work.prompt.task if self.work.prompt else ""
