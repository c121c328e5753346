"""Keeping the view true: what each line of the server changes in it. Without I/O."""

from collections.abc import Callable

from culture.protocol.message import Message
from culture.protocol.modes import ModeKind, parse_changes
from culture.protocol.vocabulary import Tag, UserClass
from culture.transport.view import ChannelView, NetworkView

_KEPT_METADATA = 64


def apply(view: NetworkView, line: Message) -> None:
    """Take note of one line."""
    handler = _HANDLERS.get(line.verb)
    if "!" in line.source:
        _note_source(view, line)
    if handler is not None and len(line.params) >= handler[1]:
        handler[0](view, line, line.params)


def _note_source(view: NetworkView, line: Message) -> None:
    """Most lines tell something about who did it."""
    nick, _, rest = line.source.partition("!")
    user = view.people.get(view.fold(nick))
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


def _welcome(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    view.nick, view.server = params[0], line.source
    view.somebody(view.nick)


def _features(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    view.features.take(params[1:-1])
    view.refold()


def _joined(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    nick, _, rest = line.source.partition("!")
    folded = view.fold(nick)
    if folded == view.fold(view.nick) and view.fold(params[0]) not in view.places:
        view.places[view.fold(params[0])] = ChannelView(params[0])
    channel = view.channel(params[0])
    if channel is None:
        return
    user = view.somebody(nick)
    user.user, _, user.host = rest.partition("@")
    channel.members.setdefault(folded, "")
    if len(params) > 2:
        user.account = None if params[1] == "*" else params[1]
        user.realname = params[2]


def _parted(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    channel = view.channel(params[0])
    if channel is not None:
        view.leave(channel, view.fold(line.source.partition("!")[0]))


def _kicked(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    channel = view.channel(params[0])
    if channel is not None:
        view.leave(channel, view.fold(params[1]))


def _quit(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    folded = view.fold(line.source.partition("!")[0])
    for channel in list(view.places.values()):
        channel.members.pop(folded, None)
    view.forget(folded)


def _renamed_user(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    old, new = view.fold(line.source.partition("!")[0]), params[0]
    user = view.people.pop(old, None)
    if old == view.fold(view.nick):
        view.nick = new
    if user is None:
        return
    user.nick = new
    view.people[view.fold(new)] = user
    for channel in view.places.values():
        if old in channel.members:
            channel.members[view.fold(new)] = channel.members.pop(old)


def _renamed_channel(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    channel = view.places.pop(view.fold(params[0]), None) if params[1] else None
    if channel is not None:
        channel.name = params[1]
        view.places[view.fold(params[1])] = channel


def _moded(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    channel = view.channel(params[0])
    if channel is None:
        return
    changes, _ = parse_changes(params[1:], view.features.kinds)
    order = list(view.features.prefixes.values())
    for change in changes:
        folded = view.fold(change.param or "")
        if view.features.kinds.get(change.mode) is ModeKind.PREFIX and folded in channel.members:
            held = set(channel.members[folded]) - {change.mode} | ({change.mode} if change.add else set())
            channel.members[folded] = "".join(sorted(held, key=order.index))
        elif view.features.kinds.get(change.mode) is ModeKind.FLAG:
            (channel.flags.add if change.add else channel.flags.discard)(change.mode)


def _modes_are(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    channel = view.channel(params[1])
    if channel is not None:
        channel.flags.clear()
        _moded(view, line, params[1:])


def _topic(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    _set_topic(view, params[0], params[1])


def _topic_is(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    _set_topic(view, params[1], params[2])


def _no_topic(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    _set_topic(view, params[1], "")


def _set_topic(view: NetworkView, name: str, topic: str) -> None:
    channel = view.channel(name)
    if channel is not None:
        channel.topic = topic


def _names(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    channel = view.channel(params[2])
    if channel is None:
        return
    signs = view.features.prefixes
    for word in params[3].split(" "):
        nick = word.lstrip("".join(signs))
        if nick:
            modes = "".join(signs[sign] for sign in word[: len(word) - len(nick)])
            user = view.somebody(nick.partition("!")[0])
            channel.members[view.fold(user.nick)] = modes


def _who(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    _, _, user, host, _, nick, flags, trailing = params[:8]
    view.learn(nick, user, host, flags, trailing.partition(" ")[2])


def _is_bot(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    found = view.people.get(view.fold(params[1]))
    if found is not None:
        found.kind = UserClass.AGENT if "agent" in params[-1].split() else UserClass.BOT


def _account_is(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    found = view.people.get(view.fold(params[1]))
    if found is not None:
        found.account = params[2]


def _logged_in(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    view.account = params[2]


def _logged_out(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    view.account = None


def _away(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    found = view.people.get(view.fold(line.source.partition("!")[0]))
    if found is not None:
        found.away = bool(params and params[0])


def _account(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    found = view.people.get(view.fold(line.source.partition("!")[0]))
    if found is not None:
        found.account = None if params[0] == "*" else params[0]
        # What somebody is comes with the login.
        found.kind = UserClass.UNKNOWN


def _changed_host(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    found = view.people.get(view.fold(line.source.partition("!")[0]))
    if found is not None:
        found.user, found.host = params[0], params[1]


def _set_name(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    found = view.people.get(view.fold(line.source.partition("!")[0]))
    if found is not None:
        found.realname = params[0]


def _value_is(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    _keep(view, params[1], params[2], params[4])


def _value_gone(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    _keep(view, params[1], params[2], None)


def _value_set(view: NetworkView, line: Message, params: tuple[str, ...]) -> None:
    _keep(view, params[0], params[1], params[3] if len(params) > 3 else None)


def _keep(view: NetworkView, target: str, key: str, value: str | None) -> None:
    owner = view.channel(target) or view.people.get(view.fold(view.nick if target == "*" else target))
    if owner is None:
        return
    if value is None:
        owner.metadata.pop(key, None)
    elif key in owner.metadata or len(owner.metadata) < _KEPT_METADATA:
        owner.metadata[key] = value


_Handler = Callable[[NetworkView, Message, tuple[str, ...]], None]
_HANDLERS: dict[str, tuple[_Handler, int]] = {
    "001": (_welcome, 1),
    "005": (_features, 2),
    "JOIN": (_joined, 1),
    "PART": (_parted, 1),
    "KICK": (_kicked, 2),
    "QUIT": (_quit, 0),
    "NICK": (_renamed_user, 1),
    "RENAME": (_renamed_channel, 2),
    "MODE": (_moded, 2),
    "324": (_modes_are, 3),
    "TOPIC": (_topic, 2),
    "331": (_no_topic, 2),
    "332": (_topic_is, 3),
    "353": (_names, 4),
    "352": (_who, 8),
    "335": (_is_bot, 3),
    "330": (_account_is, 3),
    "900": (_logged_in, 3),
    "901": (_logged_out, 1),
    "AWAY": (_away, 0),
    "ACCOUNT": (_account, 1),
    "CHGHOST": (_changed_host, 2),
    "SETNAME": (_set_name, 1),
    "METADATA": (_value_set, 3),
    "761": (_value_is, 5),
    "766": (_value_gone, 3),
}
"""What to do with each verb, and how many parameters it must have."""
