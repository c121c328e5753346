"""Our own names in the protocol, for all packages; only this module spells them."""

from enum import IntEnum, StrEnum

VENDOR = "agentirc.dev/"
"""The namespace of our capabilities, tags and metadata keys."""


class Cap(StrEnum):
    """The capabilities of our own that servers offer."""

    MENTIONS = f"{VENDOR}mentions"
    RECEIPTS = f"{VENDOR}receipts"


class Feature(StrEnum):
    """The ISUPPORT tokens of our own."""

    HUMAN = f"{VENDOR}HUMAN"
    """The WHO flag of people known by their account, as BOT is the one of programs."""


class Tag(StrEnum):
    """The message tags of our own that servers set."""

    MENTIONS = f"{VENDOR}mentions"
    CLASS = f"{VENDOR}class"
    RECEIPT = f"{VENDOR}receipt"
    KEYBOARD = f"{VENDOR}keyboard"
    """The sender was logged in by local uid, without a credential."""
    LOGIN = f"{VENDOR}login"
    """The credential of the sender's login, a ``LoginProof``; without the tag nothing is proven."""


class BatchType(StrEnum):
    """The batch types of our own."""

    MISSED = f"{VENDOR}missed"


class ClientTag(StrEnum):
    """The message tags of our own that clients set."""

    CAUSE = f"+{VENDOR}cause"
    HOPS = f"+{VENDOR}hops"
    ONCE = f"+{VENDOR}once"
    """The key of a message to be sent exactly once; its echo proves that it was sent."""
    REPLY = "+draft/reply"
    FACT = f"+{VENDOR}fact"
    """The contents of a ledger fact, as JSON."""


class UserClass(StrEnum):
    """The class of a user, as the server knows it: the values of ``Tag.CLASS``."""

    HUMAN = "human"
    AGENT = "agent"
    BOT = "bot"
    UNKNOWN = "unknown"


class LoginProof(StrEnum):
    """The credential that proved a login: the values of ``Tag.LOGIN``."""

    PASSWORD = "password"
    SCRAM = "scram"
    CERTIFICATE = "certificate"
    TOKEN = "token"
    OIDC = "oidc"
    BEHALF = "behalf"
    """The credential of a program that may log in for people, such as the web page."""


class Receipt(StrEnum):
    """How far a message has come to its recipient: the values of ``Tag.RECEIPT``."""

    STORED = "stored"
    DELIVERED = "delivered"
    INJECTED = "injected"
    ANSWERED = "answered"


class FactKind(StrEnum):
    """The kinds of ledger facts."""

    STATE = "state"
    QUESTION = "question"
    SPEND = "spend"
    ALERT = "alert"
    TASK = "task"
    RECEIPT = "receipt"
    LINK = "link"


class Verified(StrEnum):
    """The server's verdict whether a message that a fact calls an approval is one."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"


class UserKey(StrEnum):
    """Metadata keys of agents."""

    STATE = f"{VENDOR}state"
    NEXT = f"{VENDOR}next"
    """The state after the present turn, if that is decided."""
    TASK = f"{VENDOR}task"
    SINCE = f"{VENDOR}since"
    BACKEND = f"{VENDOR}backend"
    TOKENS = f"{VENDOR}tokens"
    COST_USD = f"{VENDOR}cost-usd"
    CONTEXT_PCT = f"{VENDOR}context-pct"
    TAGS = f"{VENDOR}tags"

    @property
    def word(self) -> str:
        """Return the metadata key without its namespace, as the ledger names it."""
        return self.value.removeprefix(VENDOR)


class ChannelKey(StrEnum):
    """Metadata keys of channels."""

    TAGS = f"{VENDOR}tags"
    PURPOSE = f"{VENDOR}purpose"


class AgentState(StrEnum):
    """States of an agent: the values of ``UserKey.STATE``."""

    IDLE = "idle"
    WORKING = "working"
    ASKING = "asking"
    PAUSED = "paused"
    PARKED = "parked"
    CRASHED = "crashed"


class ChannelMode(StrEnum):
    """The channel modes of our own."""

    REGISTERED = "P"
    """Saved on disk."""
    LOCAL = "L"
    """Not shared with other servers."""
    SHARED = "S"
    """Shared only with the servers of its parameter."""
    STAND_DOWN = "D"
    """Only people can wake agents here."""


class ExtensionVerb(StrEnum):
    """The IRC verbs of our own."""

    HISTORY = "HISTORY"
    HISTORYEND = "HISTORYEND"
    URLS = "URLS"
    URLSEND = "URLSEND"
    RECEIPT = "RECEIPT"
    LEDGER = "LEDGER"
    LEDGEREND = "LEDGEREND"


class ControlWord(StrEnum):
    """The orders that an agent's daemon obeys; a message has nothing else after ``@nick``."""

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
    """The channels that every installation has."""

    GENERAL = "#general"
    ALERTS = "#alerts"
    ERRORS = "#errors"


def project_channel(slug: str) -> str:
    """Return the name of the channel in which people talk about a project."""
    return f"#project-{slug}"


def standup_channel(slug: str) -> str:
    """Return the name of the channel in which a project's team reports."""
    return f"#standup-{slug}"


def work_channel(task: str) -> str:
    """Return the name of the channel in which a team's members work on one task."""
    return f"#work-{task}"


class Environment(StrEnum):
    """The environment variables that we read."""

    NICK = "CULTURE_NICK"
    HOME = "CULTURE_HOME"
    WIKI = "CULTURE_WIKI"
    """The wiki folder for `culture wiki`; the daemon of a team's member sets it."""
    TOKEN = "CULTURE_TOKEN"
    """The token that identifies an agent's processes."""


class Exit(IntEnum):
    """Exit codes of our commands."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    TIMED_OUT = 3
    DENIED = 4
    ABORTED = 5
    ASKED = 6
    WRONG_CONFIGURATION = 78
