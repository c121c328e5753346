"""Queries users: WHO (with WHOX columns if supported), and WHOIS for the class of bots."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import replace

from culture.protocol.message import Message as Line
from culture.protocol.vocabulary import UserClass
from culture.transport.message_sender import check_target
from culture.transport.requests import lines_of
from culture.transport.session import IrcSession
from culture.transport.types import ChannelMember, NotSent
from culture.transport.view import NetworkView

_TOKEN = "152"
_COLUMNS = f"%tcuhnfar,{_TOKEN}"
_MAX_WHOIS = 32


async def query_who(session: IrcSession, target: str) -> list[ChannelMember]:
    """Query the server for the members of a channel, or for one user by nick, and return them.

    ``NotSent`` is raised if the target is invalid or the server does not answer.
    """
    check_target(target)
    line = Line("WHO", (target, _COLUMNS) if "WHOX" in session.view.features else (target,))
    members = list(_members(lines_of(await session.ask(line, paced=True)), session.view))
    if session.is_ours:
        # Those with an account first: connections without one must not use up the limited number of queries.
        bots = sorted((each for each in members if each.kind is UserClass.BOT), key=lambda each: not each.account)
        nicks = [member.nick for member in bots[:_MAX_WHOIS]]
        kinds = dict(zip(nicks, await asyncio.gather(*(query_kind(session, nick) for nick in nicks)), strict=True))
        return [_with_kind(member, kinds.get(member.nick)) for member in members]
    is_agent = session.reader.is_configured_agent
    return [_with_kind(member, UserClass.AGENT if is_agent(member.nick) else None) for member in members]


async def query_kind(session: IrcSession, nick: str) -> UserClass | None:
    """Return whether a user is an agent or another bot, by WHOIS; None if WHOIS says neither."""
    check_target(nick)
    lines = list(lines_of(await session.ask(Line("WHOIS", (nick,)))))
    for line in lines:
        if line.verb == "335":
            return UserClass.AGENT if "agent" in line.params[-1].split() else UserClass.BOT
    return None


async def refresh_members(session: IrcSession, channels: Iterable[str]) -> None:
    """Query the members of these channels by WHO, so that the session's view has all of them."""
    for channel in channels:
        try:
            await query_who(session, channel)
        except NotSent as refused:
            if refused.uncertain:
                raise


def _with_kind(member: ChannelMember, kind: UserClass | None) -> ChannelMember:
    if kind is None or kind is member.kind:
        return member
    return replace(member, kind=kind)


def _members(lines: Iterable[Line], view: NetworkView) -> Iterator[ChannelMember]:
    signs = view.features.prefixes
    for line in lines:
        if line.verb == "352" and len(line.params) > 7:
            _, _, user, host, _, nick, flags, trailing = line.params[:8]
            account, realname = None, trailing.partition(" ")[2]
        elif line.verb == "354" and len(line.params) > 8 and line.params[1] == _TOKEN:
            _, _, _, user, host, nick, flags, login, realname = line.params[:9]
            account = None if login == "0" else login
            view.update_user(nick, user, host, flags, realname, account)
        else:
            continue
        user_view = view.user(nick)
        kind = user_view.kind if user_view else view.kind_of_flags(flags)
        modes = "".join(signs[sign] for sign in flags if sign in signs)
        metadata = user_view.metadata if user_view else {}
        account = account or (user_view.account if user_view else None)
        yield ChannelMember(nick, modes, account, kind, flags.startswith("G"), user, host, realname, metadata)
