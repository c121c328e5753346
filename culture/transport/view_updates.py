"""Updates the view: what each line of the server changes in it. Without I/O."""

from collections.abc import Callable

from culture.protocol.message import Message
from culture.protocol.modes import ModeKind, parse_changes
from culture.protocol.vocabulary import Tag, UserClass
from culture.transport.view import ChannelView, NetworkView

_MAX_METADATA = 64


def apply(view: NetworkView, line: Message) -> None:
    """Update the view from one line of the server."""
    handler = _HANDLERS.get(line.verb)
    if "!" in line.source:
        _update_source(view, line)
    if handler is not None and len(line.params) >= handler[1]:
        handler[0](view, line, line.params)


def _update_source(view: NetworkView, line: Message) -> None:
    """Update user, host, class and account of the sender of a line, if the view has that user."""
    nick, _, rest = line.source.partition("!")
    user = view.users.get(view.fold(nick))
    if user is None:
        return
    user.user, _, user.host = rest.partition("@")
    if Tag.CLASS.value in line.tags:
        try:
            user.kind = UserClass(line.tags[Tag.CLASS.value])
        except ValueError:
            pass
    if "account" in line.tags:
        user.account = line.tags["account"]


def _on_welcome(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    view.nick, view.server = params[0], line.source
    view.get_or_add_user(view.nick)


def _on_features(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    view.features.take(params[1:-1])
    view.refold()


def _on_join(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    nick, _, rest = line.source.partition("!")
    folded = view.fold(nick)
    if folded == view.fold(view.nick) and view.fold(params[0]) not in view.channels_by_name:
        view.channels_by_name[view.fold(params[0])] = ChannelView(params[0])
    channel = view.channel(params[0])
    if channel is None:
        return
    user = view.get_or_add_user(nick)
    user.user, _, user.host = rest.partition("@")
    channel.members.setdefault(folded, "")
    if len(params) > 2:
        user.account = None if params[1] == "*" else params[1]
        user.realname = params[2]


def _on_part(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    channel = view.channel(params[0])
    if channel is not None:
        view.remove_member(channel, view.fold(line.source.partition("!")[0]))


def _on_kick(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    channel = view.channel(params[0])
    if channel is not None:
        view.remove_member(channel, view.fold(params[1]))


def _on_quit(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    folded = view.fold(line.source.partition("!")[0])
    for channel in list(view.channels_by_name.values()):
        channel.members.pop(folded, None)
    view.remove_unseen(folded)


def _on_nick(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    old, new = view.fold(line.source.partition("!")[0]), params[0]
    user = view.users.pop(old, None)
    if old == view.fold(view.nick):
        view.nick = new
    if user is None:
        return
    user.nick = new
    view.users[view.fold(new)] = user
    for channel in view.channels_by_name.values():
        if old in channel.members:
            channel.members[view.fold(new)] = channel.members.pop(old)


def _on_rename(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    channel = view.channels_by_name.pop(view.fold(params[0]), None) if params[1] else None
    if channel is not None:
        channel.name = params[1]
        view.channels_by_name[view.fold(params[1])] = channel


def _on_mode(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    channel = view.channel(params[0])
    if channel is None:
        return
    changes, _ = parse_changes(params[1:], view.features.kinds)
    order = list(view.features.prefixes.values())
    for change in changes:
        folded = view.fold(change.param or "")
        if view.features.kinds.get(change.mode) is ModeKind.PREFIX and folded in channel.members:
            modes = set(channel.members[folded]) - {change.mode} | ({change.mode} if change.add else set())
            channel.members[folded] = "".join(sorted(modes, key=order.index))
        elif view.features.kinds.get(change.mode) is ModeKind.FLAG:
            (channel.flags.add if change.add else channel.flags.discard)(change.mode)


def _on_mode_list(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    channel = view.channel(params[1])
    if channel is not None:
        channel.flags.clear()
        _on_mode(view, line, params[1:])


def _on_topic(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    _set_topic(view, params[0], params[1])


def _on_topic_reply(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    _set_topic(view, params[1], params[2])


def _on_no_topic(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    _set_topic(view, params[1], "")


def _set_topic(view: NetworkView, name: str, topic: str) -> None:
    channel = view.channel(name)
    if channel is not None:
        channel.topic = topic


def _on_names(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    channel = view.channel(params[2])
    if channel is None:
        return
    signs = view.features.prefixes
    for word in params[3].split(" "):
        nick = word.lstrip("".join(signs))
        if nick:
            modes = "".join(signs[sign] for sign in word[: len(word) - len(nick)])
            user = view.get_or_add_user(nick.partition("!")[0])
            channel.members[view.fold(user.nick)] = modes


def _on_who(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    _, _, user, host, _, nick, flags, trailing = params[:8]
    view.update_user(nick, user, host, flags, trailing.partition(" ")[2])


def _on_whois_bot(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    user = view.users.get(view.fold(params[1]))
    if user is not None:
        user.kind = UserClass.AGENT if "agent" in params[-1].split() else UserClass.BOT


def _on_whois_account(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    user = view.users.get(view.fold(params[1]))
    if user is not None:
        user.account = params[2]


def _on_logged_in(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    view.account = params[2]


def _on_logged_out(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    view.account = None


def _on_away(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    user = view.users.get(view.fold(line.source.partition("!")[0]))
    if user is not None:
        user.away = bool(params and params[0])


def _on_account(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    user = view.users.get(view.fold(line.source.partition("!")[0]))
    if user is not None:
        user.account = None if params[0] == "*" else params[0]

        # The class belongs to the login: it is unknown until the server tells it again.
        user.kind = UserClass.UNKNOWN


def _on_chghost(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    user = view.users.get(view.fold(line.source.partition("!")[0]))
    if user is not None:
        user.user, user.host = params[0], params[1]


def _on_setname(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    user = view.users.get(view.fold(line.source.partition("!")[0]))
    if user is not None:
        user.realname = params[0]


def _on_value_reply(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    _set_metadata(view, params[1], params[2], params[4])


def _on_value_missing(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    _set_metadata(view, params[1], params[2], None)


def _on_value_change(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    _set_metadata(view, params[0], params[1], params[3] if len(params) > 3 else None)


def _set_metadata(view: NetworkView, target: str, key: str, value: str | None) -> None:
    owner = view.channel(target) or view.users.get(view.fold(view.nick if target == "*" else target))
    if owner is None:
        return
    if value is None:
        owner.metadata.pop(key, None)
    elif key in owner.metadata or len(owner.metadata) < _MAX_METADATA:
        owner.metadata[key] = value


_Handler = Callable[[NetworkView, Message, tuple[str, ...]], None]
_HANDLERS: dict[str, tuple[_Handler, int]] = {
    "001": (_on_welcome, 1),
    "005": (_on_features, 2),
    "JOIN": (_on_join, 1),
    "PART": (_on_part, 1),
    "KICK": (_on_kick, 2),
    "QUIT": (_on_quit, 0),
    "NICK": (_on_nick, 1),
    "RENAME": (_on_rename, 2),
    "MODE": (_on_mode, 2),
    "324": (_on_mode_list, 3),
    "TOPIC": (_on_topic, 2),
    "331": (_on_no_topic, 2),
    "332": (_on_topic_reply, 3),
    "353": (_on_names, 4),
    "352": (_on_who, 8),
    "335": (_on_whois_bot, 3),
    "330": (_on_whois_account, 3),
    "900": (_on_logged_in, 3),
    "901": (_on_logged_out, 1),
    "AWAY": (_on_away, 0),
    "ACCOUNT": (_on_account, 1),
    "CHGHOST": (_on_chghost, 2),
    "SETNAME": (_on_setname, 1),
    "METADATA": (_on_value_change, 3),
    "761": (_on_value_reply, 5),
    "766": (_on_value_missing, 3),
}
"""Handler of each verb, and the number of parameters it needs."""
