"""Asking who is there: WHO, with columns where the server has them, and WHOIS for what only that tells."""

import asyncio
from collections.abc import Iterable, Iterator

from culture.protocol.message import Message as Line
from culture.protocol.vocabulary import UserClass
from culture.transport.requests import lines_of
from culture.transport.sending import check_target
from culture.transport.session import IrcSession
from culture.transport.types import ChannelMember, NotSent
from culture.transport.view import NetworkView

_TOKEN = "152"
_COLUMNS = f"%tcuhnfar,{_TOKEN}"
_LOOKED_UP = 32


async def who(session: IrcSession, target: str) -> list[ChannelMember]:
    """Everybody in a channel, or whoever has a nick, as the server tells it."""
    check_target(target)
    line = Line("WHO", (target, _COLUMNS) if "WHOX" in session.view.features else (target,))
    found = list(_members(lines_of(await session.ask(line, paced=True)), session.view))
    if session.is_ours:
        # Those with an account first: connections without one must not use up what is looked up.
        programs = sorted((each for each in found if each.kind is UserClass.BOT), key=lambda each: not each.account)
        unsure = [member.nick for member in programs[:_LOOKED_UP]]
        kinds = dict(zip(unsure, await asyncio.gather(*(whois(session, nick) for nick in unsure)), strict=True))
        return [_with_kind(member, kinds.get(member.nick)) for member in found]
    is_agent = session.reader.is_configured_agent
    return [_with_kind(member, UserClass.AGENT if is_agent(member.nick) else None) for member in found]


async def whois(session: IrcSession, nick: str) -> UserClass | None:
    """What somebody is, as the server says; None when nobody has the nick, or it does not say."""
    check_target(nick)
    lines = list(lines_of(await session.ask(Line("WHOIS", (nick,)))))
    for line in lines:
        if line.verb == "335":
            return UserClass.AGENT if "agent" in line.params[-1].split() else UserClass.BOT
    return None


async def look_around(session: IrcSession, channels: Iterable[str]) -> None:
    """Learn who is in these channels."""
    for channel in channels:
        try:
            await who(session, channel)
        except NotSent as refused:
            if refused.uncertain:
                raise


def _with_kind(member: ChannelMember, kind: UserClass | None) -> ChannelMember:
    if kind is None or kind is member.kind:
        return member
    return ChannelMember(
        member.nick,
        member.modes,
        member.account,
        kind,
        member.away,
        member.user,
        member.host,
        member.realname,
        member.metadata,
    )


def _members(lines: Iterable[Line], view: NetworkView) -> Iterator[ChannelMember]:
    signs = view.features.prefixes
    for line in lines:
        if line.verb == "352" and len(line.params) > 7:
            _, _, user, host, _, nick, flags, trailing = line.params[:8]
            account, realname = None, trailing.partition(" ")[2]
        elif line.verb == "354" and len(line.params) > 8 and line.params[1] == _TOKEN:
            _, _, _, user, host, nick, flags, login, realname = line.params[:9]
            account = None if login == "0" else login
            view.learn(nick, user, host, flags, realname, account)
        else:
            continue
        known = view.user(nick)
        kind = known.kind if known else view.kind_by(flags)
        modes = "".join(signs[sign] for sign in flags if sign in signs)
        metadata = known.metadata if known else {}
        account = account or (known.account if known else None)
        yield ChannelMember(nick, modes, account, kind, flags.startswith("G"), user, host, realname, metadata)
