"""Messages: PRIVMSG, NOTICE, TAGMSG; BATCH, for several lines; MARKREAD, how far a user has read."""

import re
from collections.abc import Mapping

from culture.protocol.caps import MULTILINE
from culture.protocol.mentions import calls_all, may_mention, mentions
from culture.protocol.message import NO_TAGS, Message
from culture.protocol.names import valid_channel, valid_nick
from culture.protocol.numerics import Numeric
from culture.protocol.split import cut_line, room
from culture.protocol.stream import LINE_LIMIT
from culture.protocol.vocabulary import VENDOR, ClientTag, UserClass
from culture.server.commands import Unanswered, command
from culture.server.context import Context, as_word
from culture.server.core.labeled_response import labelled
from culture.server.core.multiline import MultilineBatch
from culture.server.core.render import Flavour, iso_time
from culture.server.core.state import Channel, User, reaches
from culture.server.errors import Failed, Refused
from culture.server.events import Line, Said
from culture.server.subscriptions.read_markers import VERB, valid_time

_make = tuple.__new__  # NamedTuple's constructor without its overhead, for the hot path
_THEIRS = frozenset(ClientTag)  # tags of our namespace that clients may set
_STATUS = "@+"
_SURELY_FITS = 90  # characters that fit beside any prefix and target, at four bytes each
_BATCH_NAME = re.compile(r"[A-Za-z0-9-]{1,64}")
_TIMESTAMP = "timestamp="


@command("PRIVMSG")
def privmsg(ctx: Context, message: Message) -> None:
    """``PRIVMSG target :text``: send a message to a channel or user."""
    params = message.params
    targets, text = params if len(params) == 2 and all(params) else _addressed(message)
    tags = client_tags(message) if message.tags else NO_TAGS
    if "," not in targets:
        say(ctx, "PRIVMSG", targets, text, tags)
        return
    for target in _targets(ctx, targets):
        ctx.each(say, "PRIVMSG", target, text, tags)


@command("NOTICE")
def notice(ctx: Context, message: Message) -> None:
    """``NOTICE target :text``: send a message that no program answers (RFC 2812 §3.3.2)."""
    try:
        targets, text = _addressed(message)
        chosen = _targets(ctx, targets)
    except Refused:
        return
    for target in chosen:
        try:
            say(ctx, "NOTICE", target, text, client_tags(message))
        except Refused as refused:
            if refused.numeric is Numeric.ERR_INPUTTOOLONG:
                raise


@command("TAGMSG")
def tagmsg(ctx: Context, message: Message) -> None:
    """``@+tag TAGMSG target``: send tags without a text (IRCv3 message-tags)."""
    if "message-tags" not in ctx.session.caps.enabled:
        raise Refused(Numeric.ERR_UNKNOWNCOMMAND, "TAGMSG")
    if not message.params or not message.params[0]:
        raise Refused(Numeric.ERR_NEEDMOREPARAMS, "TAGMSG")
    tags = client_tags(message)
    for target in _targets(ctx, message.params[0]) if tags else ():
        ctx.each(say, "TAGMSG", target, "", tags)


def _addressed(message: Message) -> tuple[str, str]:
    params = message.params
    if not params or not params[0]:
        raise Refused(Numeric.ERR_NORECIPIENT, text=f"No recipient given ({message.verb})")
    if len(params) < 2 or not params[1]:
        raise Refused(Numeric.ERR_NOTEXTTOSEND)
    return params[0], params[1]


def _targets(ctx: Context, targets: str) -> list[str]:
    chosen = list(dict.fromkeys(target for target in targets.split(",") if target))
    if len(chosen) > ctx.config.limits.targets:
        raise Refused(Numeric.ERR_TOOMANYTARGETS, chosen[ctx.config.limits.targets])
    return chosen


def client_tags(message: Message) -> Mapping[str, str]:
    """Return those tags of a message that clients may send each other.

    They begin with ``+``; of our own tags only those in ClientTag are among them.
    """
    if not message.tags:
        return NO_TAGS
    return {key: value for key, value in message.tags.items() if key[:1] == "+" and not _is_forged(key)}


def _is_forged(key: str) -> bool:
    """Return whether a tag from a client has a key that only servers may set."""
    return key.startswith(f"+{VENDOR}") and key not in _THEIRS


def say(ctx: Context, verb: str, target: str, text: str, tags: Mapping[str, str], lines: tuple[Line, ...] = ()) -> None:
    """Send a client's message to one target; raises Refused if the client may not send it.

    ``verb``: PRIVMSG, NOTICE or TAGMSG. ``lines``: the lines of a multiline message.
    """
    user = ctx.session.user
    if user is None:
        raise Refused(Numeric.ERR_NOTREGISTERED)
    status = ""
    mentioned: tuple[str, ...] = ()
    other: User | None = None
    if target[0] in _STATUS and target[1:2] == "#":
        status, target = target[0], target[1:]
    if target[0] == "#":
        channel = ctx.find_channel(target)
        if channel.is_guarded or user not in channel.members:
            _check_speech(channel, user, text, lines)
        ctx.session.place = target = channel.name
        if verb == "PRIVMSG" and may_mention(text):
            mentioned = _mentioned_nicks(channel, user, text, status)
    else:
        other = ctx.find_user(target)
        if other.modes:
            _check_private(other, user)
        target = other.nick
    if lines:
        lines = _fitting(lines, room(user.source, verb, status + target))
    elif len(text) > _SURELY_FITS:
        _check_length(user.source, verb, status + target, text)
    if other is not None and other.away is not None and verb == "PRIVMSG":
        ctx.reply(Numeric.RPL_AWAY, other.nick, text=other.away)
    if "B" in user.modes:
        tags = {"bot": "", **tags}
    if login_tags := ctx.session.login_tags:
        tags = {**login_tags, **tags} if tags else login_tags
    stamp = ctx.router.ids.stamp()
    ctx.session.spoke = stamp.at
    fields = (stamp, user.source, verb, target, text, user.account, user.kind, tags, mentioned, status, lines, None)
    ctx.router.publish(_make(Said, fields), ctx.session)


def _check_speech(channel: Channel, user: User, text: str, lines: tuple[Line, ...]) -> None:
    if not channel.may_speak(user):
        raise Refused(Numeric.ERR_CANNOTSENDTOCHAN, channel.name)
    if "C" in channel.flags and any(map(_is_ctcp, (text, *(line.text for line in lines)))):
        raise Refused(Numeric.ERR_CANNOTSENDTOCHAN, channel.name, text="No CTCP in this channel (+C)")


def _is_ctcp(text: str) -> bool:
    return text.startswith("\x01") and not text.startswith("\x01ACTION")


def _fitting(lines: tuple[Line, ...], most: int) -> tuple[Line, ...]:
    """Return the lines with those that exceed ``most`` bytes split.

    The rest of a split line follows as further lines that are marked as its continuation.
    """
    fitting = []
    for text, concat in lines:
        first, *rest = cut_line(text, most)
        fitting += [Line(first, concat), *(Line(piece, True) for piece in rest)]
    return tuple(fitting)


def _check_private(other: User, user: User) -> None:
    if "R" in other.modes and user.account is None and other is not user:
        raise Refused(Numeric.ERR_NEEDREGGEDNICK, other.nick, text="You must be logged in to message this user (+R)")


def _check_length(source: str, verb: str, target: str, text: str) -> None:
    over = len(text.encode()) - room(source, verb, target)
    if over > 0:
        raise Refused(
            Numeric.ERR_INPUTTOOLONG,
            text=f"Text too long by {over} bytes: {LINE_LIMIT} with your name and the target, "
            f"which leaves {room(source, verb, target)}",
        )


def _mentioned_nicks(channel: Channel, user: User, text: str, status: str) -> tuple[str, ...]:
    """Return the nicks that the text mentions; ``@all`` of a person mentions all agents.

    Only members who get the message count: all, or those with the rank ``status``.
    """
    members = channel.members.items()
    hearers = [member for member, rank in members if not status or reaches(rank, status)]
    nicks = mentions(text, (member.nick for member in hearers))
    if calls_all(text) and user.kind == UserClass.HUMAN:
        agents = (member.nick for member in hearers if member.is_agent)
        nicks = tuple(dict.fromkeys((*nicks, *agents)))
    return tuple(nick for nick in nicks if nick != user.nick)


@command("BATCH", params=1)
def batch(ctx: Context, message: Message) -> Unanswered | None:
    """``BATCH +name draft/multiline target``: begin a message of several lines.

    Then send its lines with the tag ``batch=name``, and ``BATCH -name`` to finish it.
    """
    reference = message.params[0]
    sign, name = reference[:1], reference[1:]
    if sign == "-":
        _close_batch(ctx, name)
        return None
    opened = MultilineBatch(name, "*", client_tags(message), _label(ctx, message), ctx.session.connection.last_active)
    ctx.parts.batches.open(ctx.session, opened)
    try:
        opened.target = _batch_target(ctx, sign, message)
    except Failed:
        opened.is_refused = True
        raise
    return Unanswered.YET


def _label(ctx: Context, message: Message) -> str | None:
    return message.tags.get("label") if "labeled-response" in ctx.session.caps.enabled else None


def _batch_target(ctx: Context, sign: str, message: Message) -> str:
    reference, kind, target, *_ = (*message.params, "", "")
    if sign != "+" or not _BATCH_NAME.fullmatch(reference[1:]):
        text = "A batch name consists of A-Z a-z 0-9 and -; + opens a batch, - closes it"
        raise Failed("BATCH", "INVALID_REFTAG", reference, text=text)
    if kind != MULTILINE or not ctx.session.wants & Flavour.MULTILINE:
        raise Failed(
            "BATCH", "UNKNOWN_TYPE", reference[1:], kind, text=f"Only batches of type {MULTILINE}, with that capability"
        )
    if as_word(target) != target:
        raise Failed("BATCH", "MULTILINE_INVALID", text="A batch needs a target")
    return target


def _close_batch(ctx: Context, name: str) -> None:
    batch, session = ctx.parts.batches.close(ctx.session, name), ctx.session
    if batch is None:
        return
    if batch.label is None or session.is_captured:
        _deliver_batch(ctx, batch)
        return
    captured = session.capture()
    ctx.each(_deliver_batch, batch)
    session.release()
    session.pull(labelled(captured, batch.label, ctx.router.name))


def _deliver_batch(ctx: Context, batch: MultilineBatch) -> None:
    try:
        say(ctx, batch.verb, batch.target, batch.text, batch.tags, tuple(batch.lines))
    except Refused:
        if batch.verb != "NOTICE":  # nothing answers a NOTICE (RFC 2812 §3.3.2)
            raise


@command(VERB)
def markread(ctx: Context, message: Message) -> None:
    """``MARKREAD target [timestamp=time]``: set how far you have read, or ask for it."""
    if not message.params:
        raise Failed(VERB, "NEED_MORE_PARAMS", text="Name a channel or nick")
    target, *words = message.params
    limits, markers, user = ctx.config.limits, ctx.parts.markers, ctx.user
    if not valid_channel(target, limits.channel_length) and not valid_nick(target, limits.nick_length):
        raise Failed(VERB, "INVALID_PARAMS", target, text="This is neither a channel nor a nick")
    if words and markers.set(user, target, _marker_time(ctx, words[0]), limits.read_markers):
        others = [session for session in markers.sessions(user) if session is not ctx.session]
        markers.show(others, user, target)
    markers.show([ctx.session], user, target)


def _marker_time(ctx: Context, words: str) -> str:
    """Return the time in ``words``, a parameter ``timestamp=time``; at most the present time.

    Raises Failed if there is no valid time.
    """
    time = words.removeprefix(_TIMESTAMP)
    if time == words or not valid_time(time):
        raise Failed(VERB, "INVALID_PARAMS", words, text=f"A time looks like {_TIMESTAMP}{iso_time(ctx.now())}")
    return min(time, iso_time(ctx.now()))
