"""The names that more than one part reads; nothing else in the code spells them."""

from enum import IntEnum, StrEnum

VENDOR = "agentirc.dev/"
"""The namespace of our own capabilities, tags and metadata keys."""


class Cap(StrEnum):
    """The capabilities of ours."""

    MENTIONS = f"{VENDOR}mentions"
    RECEIPTS = f"{VENDOR}receipts"


class Tag(StrEnum):
    """The tags that servers of ours put on messages."""

    MENTIONS = f"{VENDOR}mentions"
    CLASS = f"{VENDOR}class"
    RECEIPT = f"{VENDOR}receipt"


class ClientTag(StrEnum):
    """The tags that clients of ours put on messages."""

    CAUSE = f"+{VENDOR}cause"
    HOPS = f"+{VENDOR}hops"
    REPLY = "+draft/reply"


class UserClass(StrEnum):
    """What a user is, as the server knows it: the values of ``Tag.CLASS``."""

    HUMAN = "human"
    AGENT = "agent"
    BOT = "bot"
    UNKNOWN = "unknown"


class Receipt(StrEnum):
    """How far a message has come: the values of ``Tag.RECEIPT``."""

    STORED = "stored"
    DELIVERED = "delivered"
    INJECTED = "injected"
    ANSWERED = "answered"


class UserKey(StrEnum):
    """The metadata of an agent."""

    STATE = f"{VENDOR}state"
    TASK = f"{VENDOR}task"
    SINCE = f"{VENDOR}since"
    BACKEND = f"{VENDOR}backend"
    TOKENS = f"{VENDOR}tokens"
    COST_USD = f"{VENDOR}cost-usd"
    CONTEXT_PCT = f"{VENDOR}context-pct"
    TAGS = f"{VENDOR}tags"


class ChannelKey(StrEnum):
    """The metadata of a channel."""

    TAGS = f"{VENDOR}tags"
    PURPOSE = f"{VENDOR}purpose"


class State(StrEnum):
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


class Verb(StrEnum):
    """The verbs that are ours."""

    HISTORY = "HISTORY"
    HISTORYEND = "HISTORYEND"
    URLS = "URLS"
    URLSEND = "URLSEND"


class Control(StrEnum):
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


class Channel(StrEnum):
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


class Exit(IntEnum):
    """What a command ends with."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    TIMED_OUT = 3
    DENIED = 4
    ABORTED = 5
    WRONG_CONFIGURATION = 78
