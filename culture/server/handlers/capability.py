"""CAP: capabilities that a client wants (IRCv3 capability negotiation)."""

from culture.protocol.caps import MULTILINE, VERSION_302, lines
from culture.protocol.message import Message
from culture.protocol.numerics import Numeric
from culture.protocol.vocabulary import Cap
from culture.server.commands import Later, command
from culture.server.context import Context
from culture.server.core.multiline import offer as multiline_offer
from culture.server.core.session_lifecycle import complete
from culture.server.errors import Refused
from culture.server.handlers.account import CAPABILITY as ACCOUNT_REGISTRATION
from culture.server.handlers.account import may_make_account
from culture.server.handlers.account import offer as account_registration
from culture.server.handlers.authenticate import mechanisms
from culture.server.subscriptions.metadata import CAPABILITY as METADATA
from culture.server.subscriptions.metadata import is_aware
from culture.server.subscriptions.metadata_replies import offer as metadata_offer
from culture.server.subscriptions.read_markers import CAP as READ_MARKER

OFFERED: dict[str, str | None] = {
    "account-notify": None,
    "account-tag": None,
    "away-notify": None,
    "batch": None,
    "cap-notify": None,
    "chghost": None,
    ACCOUNT_REGISTRATION: None,
    "draft/channel-rename": None,
    "draft/message-redaction": None,
    METADATA: None,
    MULTILINE: None,
    READ_MARKER: None,
    "echo-message": None,
    "extended-join": None,
    "extended-monitor": None,
    "invite-notify": None,
    "labeled-response": None,
    "message-tags": None,
    "multi-prefix": None,
    "sasl": None,
    "server-time": None,
    "setname": None,
    "standard-replies": None,
    "userhost-in-names": None,
    Cap.MENTIONS.value: None,
}
_ROOM = 400  # bytes of a line for capabilities
_ONE_LINE = 8191  # bytes for clients that read one line only


@command("CAP", params=1, early=True)
def cap(ctx: Context, message: Message) -> Later | None:
    """``CAP LS|LIST|REQ|END``: list capabilities, list the active ones, request some, finish."""
    action, words = message.params[0].upper(), message.params[1:]
    match action:
        case "LS":
            _list_offered(ctx, words)
        case "LIST":
            _answer(ctx, "LIST", sorted(ctx.session.caps.enabled))
        case "REQ":
            _request(ctx, " ".join(words))
        case "END":
            return _end(ctx)
        case _:
            raise Refused(Numeric.ERR_INVALIDCAPCMD, message.params[0] or "*")
    return None


def offered(ctx: Context) -> dict[str, str | None]:
    """Return the capabilities offered to this session; some values depend on its connection."""
    capabilities = (
        OFFERED
        | ctx.parts.skills.caps()
        | {
            "sasl": ",".join(mechanisms(ctx)),
            METADATA: metadata_offer(ctx),
            MULTILINE: multiline_offer(ctx.config.limits),
            ACCOUNT_REGISTRATION: account_registration(ctx),
        }
    )
    if not may_make_account(ctx):
        del capabilities[ACCOUNT_REGISTRATION]
    return capabilities


def _list_offered(ctx: Context, words: tuple[str, ...]) -> None:
    has_version = words and words[0].isascii() and words[0].isdigit()
    ctx.session.caps.begin(int(words[0][:4]) if has_version else 301)
    capabilities = offered(ctx)
    if ctx.session.caps.version < VERSION_302 and ctx.session.user is None:
        # These clients read one line only; the other capabilities can be requested anyway.
        capabilities = {name: value for name, value in capabilities.items() if "/" not in name}
    _answer(ctx, "LS", ctx.session.caps.offer(capabilities))


def _request(ctx: Context, words: str) -> None:
    session = ctx.session
    requested = [word for word in words.split(" ") if word]
    if not session.caps.request(requested, offered(ctx)):
        _answer(ctx, "NAK", requested)
        return
    session.enable(session.caps.enabled)
    if not is_aware(session):
        ctx.parts.subscriptions.clear(session)
    if session.user is not None:
        ctx.router.regroup(session.user)
    _answer(ctx, "ACK", requested)


def _end(ctx: Context) -> Later | None:
    ctx.session.caps.end()
    return complete(ctx) if ctx.session.user is None else None


def _answer(ctx: Context, action: str, words: list[str]) -> None:
    """Send capabilities (``words``) in one line, or to clients of version 302 in several.

    ``action``: subcommand of CAP, such as LS. All lines but the last are marked with ``*``.
    """
    nick = ctx.session.nick or "*" if ctx.session.user is None else ctx.nick
    *most, last = lines(words, _ROOM if ctx.session.caps.version >= VERSION_302 else _ONE_LINE)
    for line in most:
        ctx.send("CAP", nick, action, "*", line)
    ctx.send("CAP", nick, action, last)
