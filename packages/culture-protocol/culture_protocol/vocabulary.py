"""The names that more than one part reads; nothing else in the code spells them."""

from enum import IntEnum, StrEnum

VENDOR = "agentirc.dev/"
"""The namespace of our own capabilities, tags and metadata keys."""


class Cap(StrEnum):
    """The capabilities of ours."""

    MENTIONS = f"{VENDOR}mentions"
    RECEIPTS = f"{VENDOR}receipts"


class Feature(StrEnum):
    """The tokens of ISUPPORT that are ours."""

    HUMAN = f"{VENDOR}HUMAN"
    """The flag of WHO for a person whom the server knows by their account, as BOT is the one for programs."""


class Tag(StrEnum):
    """The tags that servers of ours put on messages."""

    MENTIONS = f"{VENDOR}mentions"
    CLASS = f"{VENDOR}class"
    RECEIPT = f"{VENDOR}receipt"
    KEYBOARD = f"{VENDOR}keyboard"
    """The sender was logged in by local uid, and showed no credential."""
    LOGIN = f"{VENDOR}login"
    """With which credential the sender had logged in: one of ``LoginProof``. Without it nothing is proven."""


class BatchType(StrEnum):
    """The types of batches of ours."""

    MISSED = f"{VENDOR}missed"


class ClientTag(StrEnum):
    """The tags that clients of ours put on messages."""

    CAUSE = f"+{VENDOR}cause"
    HOPS = f"+{VENDOR}hops"
    ONCE = f"+{VENDOR}once"
    """Names what is to be said once: who sees it on the server knows that it was said."""
    REPLY = "+draft/reply"
    FACT = f"+{VENDOR}fact"
    """What a fact of the ledger says, as JSON."""


class UserClass(StrEnum):
    """What a user is, as the server knows it: the values of ``Tag.CLASS``."""

    HUMAN = "human"
    AGENT = "agent"
    BOT = "bot"
    UNKNOWN = "unknown"


class LoginProof(StrEnum):
    """The credential that a login was proven with: the values of ``Tag.LOGIN``."""

    PASSWORD = "password"
    SCRAM = "scram"
    CERTIFICATE = "certificate"
    TOKEN = "token"
    OIDC = "oidc"
    BEHALF = "behalf"
    """Of a program that may log in for people, as the web page does."""


class Receipt(StrEnum):
    """How far a message has come: the values of ``Tag.RECEIPT``."""

    STORED = "stored"
    DELIVERED = "delivered"
    INJECTED = "injected"
    ANSWERED = "answered"


class FactKind(StrEnum):
    """What the facts of the ledger are about."""

    STATE = "state"
    QUESTION = "question"
    SPEND = "spend"
    ALERT = "alert"
    TASK = "task"
    RECEIPT = "receipt"
    LINK = "link"


class Verified(StrEnum):
    """What a server found when it looked up the message that a fact names as an approval."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"


class UserKey(StrEnum):
    """The metadata of an agent."""

    STATE = f"{VENDOR}state"
    NEXT = f"{VENDOR}next"
    """The state that follows when the present turn is over, where that is decided."""
    TASK = f"{VENDOR}task"
    SINCE = f"{VENDOR}since"
    BACKEND = f"{VENDOR}backend"
    TOKENS = f"{VENDOR}tokens"
    COST_USD = f"{VENDOR}cost-usd"
    CONTEXT_PCT = f"{VENDOR}context-pct"
    TAGS = f"{VENDOR}tags"

    @property
    def word(self) -> str:
        """The key without its vendor, as the ledger has it."""
        return self.value.removeprefix(VENDOR)


class ChannelKey(StrEnum):
    """The metadata of a channel."""

    TAGS = f"{VENDOR}tags"
    PURPOSE = f"{VENDOR}purpose"


class AgentState(StrEnum):
    """What an agent is doing: the values of ``UserKey.STATE``."""

    IDLE = "idle"
    WORKING = "working"
    ASKING = "asking"
    PAUSED = "paused"
    PARKED = "parked"
    CRASHED = "crashed"


class ChannelMode(StrEnum):
    """The channel modes that are ours."""

    REGISTERED = "P"
    """Kept on disk."""
    LOCAL = "L"
    """Never leaves this server."""
    SHARED = "S"
    """Shared with the servers of its parameter only."""
    STAND_DOWN = "D"
    """Only people wake agents."""


class ExtensionVerb(StrEnum):
    """The verbs that are ours."""

    HISTORY = "HISTORY"
    HISTORYEND = "HISTORYEND"
    URLS = "URLS"
    URLSEND = "URLSEND"
    RECEIPT = "RECEIPT"
    LEDGER = "LEDGER"
    LEDGEREND = "LEDGEREND"


class ControlWord(StrEnum):
    """What a person may tell an agent's daemon, as the whole text behind ``@nick``."""

    STATUS = "status"
    PAUSE = "pause"
    RESUME = "resume"
    ABORT = "abort"
    GO_ON = "go on"
    STAND_DOWN = "stand down"
    COMPACT = "compact"
    CLEAR = "clear"
    BUDGET = "budget"
    HELP = "help"


class WellKnownChannel(StrEnum):
    """The channels everybody knows."""

    GENERAL = "#general"
    ALERTS = "#alerts"
    ERRORS = "#errors"


def project_channel(slug: str) -> str:
    """Where a project is talked about."""
    return f"#project-{slug}"


def standup_channel(slug: str) -> str:
    """Where a project's team reports."""
    return f"#standup-{slug}"


def work_channel(task: str) -> str:
    """Where one task is worked on."""
    return f"#work-{task}"


class Environment(StrEnum):
    """The variables we read."""

    NICK = "CULTURE_NICK"
    HOME = "CULTURE_HOME"
    WIKI = "CULTURE_WIKI"
    """Folder of the wiki that `culture wiki` uses; the daemon of a team's member sets it."""
    TOKEN = "CULTURE_TOKEN"
    """What an agent's processes are known by."""


class Exit(IntEnum):
    """What a command ends with."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    TIMED_OUT = 3
    DENIED = 4
    ABORTED = 5
    ASKED = 6
    WRONG_CONFIGURATION = 78
