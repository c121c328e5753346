"""The tokens of numeric 005 (ISUPPORT) and the modes that this server knows."""

from collections.abc import Iterable, Iterator

from culture.config.model import ServerConfig
from culture.protocol.modes import ModeKind
from culture.protocol.vocabulary import ChannelMode, Feature

PERSON = "P"
"""The flag for people in the replies to WHO."""
USER_MODES = "BRiow"
KEY_LENGTH = 23  # RFC 2812 §2.3.1
MODE_KINDS = {
    "b": ModeKind.LIST,
    "e": ModeKind.LIST,
    "I": ModeKind.LIST,
    "k": ModeKind.ALWAYS,
    "l": ModeKind.WHEN_SET,
    ChannelMode.SHARED.value: ModeKind.WHEN_SET,
    "i": ModeKind.FLAG,
    "m": ModeKind.FLAG,
    "n": ModeKind.FLAG,
    "s": ModeKind.FLAG,
    "t": ModeKind.FLAG,
    "C": ModeKind.FLAG,
    ChannelMode.STAND_DOWN.value: ModeKind.FLAG,
    ChannelMode.LOCAL.value: ModeKind.FLAG,
    ChannelMode.REGISTERED.value: ModeKind.FLAG,
    "o": ModeKind.PREFIX,
    "v": ModeKind.PREFIX,
}
CHANNEL_MODES = "".join(sorted(MODE_KINDS))
PARAMETER_MODES = "".join(sorted(mode for mode, kind in MODE_KINDS.items() if kind is not ModeKind.FLAG))
_PER_LINE = 13


def tokens(config: ServerConfig, skill_tokens: Iterable[str] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the ISUPPORT tokens of server and skills, sorted, in groups that fit a line (005)."""
    words = tuple(sorted((*_tokens(config), *skill_tokens)))
    for start in range(0, len(words), _PER_LINE):
        yield words[start : start + _PER_LINE]


def _tokens(config: ServerConfig) -> Iterator[str]:
    limits = config.limits
    yield "ACCOUNTEXTBAN=a"
    yield f"AWAYLEN={limits.away_length}"
    yield "BOT=B"
    yield "CASEMAPPING=ascii"
    yield f"CHANLIMIT=#:{limits.channels_per_client}"
    kinds = (ModeKind.LIST, ModeKind.ALWAYS, ModeKind.WHEN_SET, ModeKind.FLAG)
    yield f"CHANMODES={','.join(map(_letters, kinds))}"
    yield f"CHANNELLEN={limits.channel_length}"
    yield "CHANTYPES=#"
    yield "ELIST=CMNTU"
    yield "EXCEPTS=e"
    yield "EXTBAN=,am"
    yield f"HOSTLEN={_HOST_LENGTH}"
    yield "INVEX=I"
    yield f"KEYLEN={KEY_LENGTH}"
    yield f"KICKLEN={limits.kick_length}"
    yield f"MAXLIST=beI:{limits.list_entries}"
    yield f"MODES={limits.modes}"
    yield f"MONITOR={limits.monitor}"
    yield f"NAMELEN={limits.realname_length}"
    yield f"NETWORK={config.network}"
    yield f"NICKLEN={limits.nick_length}"
    yield "PREFIX=(ov)@+"
    yield "SAFELIST"
    yield "STATUSMSG=@+"
    speech = ",".join(f"{verb}:{limits.targets}" for verb in ("NOTICE", "PRIVMSG", "TAGMSG"))
    yield f"TARGMAX=JOIN:,KICK:,LIST:,NAMES:,PART:,WHOIS:1,{speech}"
    yield f"TOPICLEN={limits.topic_length}"
    yield f"USERLEN={limits.user_length + 1}"
    yield "UTF8ONLY"
    yield "WHOX"
    yield f"{Feature.HUMAN.value}={PERSON}"


_HOST_LENGTH = 63


def _letters(kind: ModeKind) -> str:
    return "".join(mode for mode, each in MODE_KINDS.items() if each is kind)
