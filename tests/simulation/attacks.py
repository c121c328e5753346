"""What the hostile peer (``hostile.py``) sends: each attack returns some lines, and bytes that are no whole line.

A peer with full trust is believed like a server of one's own: its users may set modes, kick, and take messages back,
and it may speak for servers that are not linked here. So with full trust only those attacks are made that nobody may
make; with less, all of them.
"""

import json
from collections.abc import Callable, Sequence

from culture.protocol.message import Message
from culture.server.events import nick_of
from tests.simulation.hostile import MARK, NAME, HostilePeer
from tests.simulation.workload import MAIN

Lines = Sequence[str | bytes]
_HUGE = 999_999_999_999_999_999
_FLOOD = 200
_ENDING = 0.15
"""How often an attack is one that ends the link."""
_TALK = 0.25
_GHOST = "ghost"


def choose(peer: HostilePeer) -> Lines:
    """Return the lines of one attack, or of a user of its own who just talks."""
    chance = peer.chance.random()
    if chance < _TALK:
        return _talk(peer)
    if chance < _TALK + _ENDING:
        return peer.chance.choice(_ENDINGS)(peer)
    return peer.chance.choice(_ALWAYS if peer.trust == "full" else _ALWAYS + _WITHOUT_AUTHORITY)(peer)


def _talk(peer: HostilePeer) -> Lines:
    target = MAIN if peer.chance.random() < 0.7 else peer.chance.choice(peer.people)
    user = peer.user()
    return [peer.event(user, f"PRIVMSG {target} :{user.partition('!')[0]} says {peer.number()}", "kind=human")]


def _target(peer: HostilePeer) -> str:
    return peer.chance.choice([MAIN, *peer.people])


def _victims_person(peer: HostilePeer) -> str:
    return peer.chance.choice([nick for nick in peer.people if nick.startswith(f"{peer.victim.name}-")])


def _others_person(peer: HostilePeer) -> str:
    return peer.chance.choice([nick for nick in peer.people if not nick.startswith(f"{peer.victim.name}-")])


# What nobody may do, whatever its trust


def _words_of_the_victim(peer: HostilePeer) -> Lines:
    """A message of a user of the victim, with no seal, a made-up one, or that of another message."""
    seals = [tag for line in peer.heard for tag in line[1:].partition(" ")[0].split(";") if tag.startswith("seal=")]
    seal = peer.chance.choice(["", "seal=00112233445566778899aabbccddeeff", *seals[-3:]])
    return [
        peer.forged(peer.victim.name, f"{_victims_person(peer)}!u@h", f"PRIVMSG {_target(peer)} :{peer.lie()}", seal)
    ]


def _altered(peer: HostilePeer) -> Lines:
    """A message of the victim with another text, under its id and its seal."""
    own = [line for line in peer.heard if f"id={peer.victim.name}." in line and " PRIVMSG " in line]
    if not own:
        return []
    head, _, _ = peer.chance.choice(own).rpartition(" :")
    return [f"{head} :{peer.lie()}"]


def _repeated(peer: HostilePeer) -> Lines:
    """What the victim or it itself has said, once more and in another order."""
    lines = [*peer.heard, *(line for line in peer.told if " PRIVMSG " in line)]
    return peer.chance.sample(lines, min(len(lines), 20))


def _own_state_again(peer: HostilePeer) -> Lines:
    """State of its own users in another order."""
    return peer.chance.sample(list(peer.told), min(len(peer.told), 10))


def _positions(peer: HostilePeer) -> Lines:
    """To have, and to have told, what nobody has; to have lost much."""
    lines = [f"ACK {_HUGE} {_HUGE}", f"EOBACKFILL {_HUGE}", f"GAP {_HUGE}", f"ACK 0 {_HUGE}"]
    said = f"{NAME} says {peer.number()}"
    return [peer.chance.choice(lines), peer.event(peer.user(), f"PRIVMSG {MAIN} :{said}", f"n={_HUGE}")]


def _custody(peer: HostilePeer) -> Lines:
    """To have taken over messages that were never given to it."""
    ids = [
        f"{origin}.{epoch}.{max(1, peer.sequences[origin] - back)}"
        for origin, epoch in peer.epochs.items()
        for back in range(20)
    ]
    return [f"CUSTODY {id}" for id in [*ids, "nobody.0.1", "garbage"]]


def _receipts(peer: HostilePeer) -> Lines:
    """That messages were stored, which only their own server says."""
    lines: list[str] = []
    for text in list(peer.heard)[-5:]:
        line = Message.parse(text)
        id, nick = line.tags["id"], nick_of(line.source)
        lines.append(peer.event(peer.user(), f"RECEIPT {nick} {id} stored"))
        tags = f"agentirc.dev/receipt=stored;+draft/reply={id}"
        lines.append(peer.event(peer.user(), f"TAGMSG {nick}", tags))
        lines.append(peer.event(peer.user(), f"TAGMSG {MAIN}", tags))
    return lines


def _clocks(peer: HostilePeer) -> Lines:
    """Messages from far ahead, and from long ago."""
    at = peer.chance.choice([0.0, 4e9, 9e10, peer.world.now + 86_400])
    return [peer.event(peer.user(), f"PRIVMSG {MAIN} :{NAME} says {peer.number()}", at=at)]


def _links(peer: HostilePeer) -> Lines:
    """To be linked to everybody; who the victim is linked to, and of servers that there are not."""
    version = peer.chance.choice([1, _HUGE, round((peer.world.now + 1e6) * 1e6)])
    name = peer.victim.name
    return [
        peer.link_state([name, *peer.others, _GHOST]),
        f"@peers={NAME};epoch={peer.epochs.get(name, '0')} :{name} LINKSTATE {name} {version} :{MARK}",
        f"@peers={NAME};epoch=0 :{_GHOST} LINKSTATE {_GHOST} {version} :{MARK}",
    ]


def _members(peer: HostilePeer) -> Lines:
    """Users of other servers come into the channel, or leave it."""
    nicks = ",".join(peer.people)
    return [f":{NAME} {peer.chance.choice(('MEMBERS', 'NPART'))} {MAIN} {nicks}"]


def _state_of_the_victim(peer: HostilePeer) -> Lines:
    """Users of the victim leave, are renamed, and have another account."""
    nick = _victims_person(peer)
    words = peer.chance.choice([f"QUIT :{MARK}", f"NICK {peer.victim.name}-{MARK}", f"ACCOUNT {MARK} human", "PART #x"])
    return [peer.forged(peer.victim.name, f"{nick}!u@h", words)]


def _roster_of_the_victim(peer: HostilePeer) -> Lines:
    """The victim has no users, or others."""
    name = peer.victim.name
    arrived = f"@account=p0;kind=human :{name} NICK {name}-{MARK} 1 u h {name} + :{MARK}"
    end = f":{name} ENDROSTER {name}"
    return [f":{name} ROSTER {name} {peer.epochs.get(name, '0')} {_HUGE}", arrived, end]


def _questions(peer: HostilePeer) -> Lines:
    """Many questions, whose answers are long."""
    return [f":{NAME} WANT {what}" for what in (peer.victim.name, MAIN, *peer.others, "nobody") * 5]


def _unknown(peer: HostilePeer) -> Lines:
    """Lines that are none, of a newer protocol."""
    return [f":{NAME} {MARK.upper()} {at}" for at in range(30)]


def _flood(peer: HostilePeer) -> Lines:
    """Many messages at once."""
    return [peer.event(peer.user(), f"PRIVMSG {MAIN} :{NAME} says {peer.number()}") for _ in range(_FLOOD)]


def _huge_tags(peer: HostilePeer) -> Lines:
    """A message with more tags than a client may send."""
    tags = f"+{MARK}={'x' * 100_000}"
    return [peer.event(peer.user(), f"PRIVMSG {MAIN} :{NAME} says {peer.number()}", tags)]


def _half_line(peer: HostilePeer) -> Lines:
    """A part of a line, and the rest of it with the next attack."""
    return [f"@id={NAME}.0.".encode(), *_talk(peer)]


# What ends the link


def _garbage(peer: HostilePeer) -> Lines:
    junk = [b"\0\r\n", b"\xff\xfe\r\n", b"x" * (1 << 20) + b"x\r\n", b"\r\n" * 50, b"@ : \r\n", b"SERVER x 1 :y\r\n"]
    return [peer.chance.choice(junk)]


def _colliding_nick(peer: HostilePeer) -> Lines:
    """A user of its own who has the nick of another server's."""
    nick = peer.chance.choice([*peer.people, f"{peer.victim.name}-{MARK}", NAME, peer.victim.name])
    return [peer.event(NAME, f"NICK {nick} 1 u h {NAME} + :{MARK}", "account=p0;kind=human")]


def _taken_nick(peer: HostilePeer) -> Lines:
    """A user of its own takes the nick of another server's."""
    return [peer.event(peer.user(), f"NICK {peer.chance.choice(peer.people)}")]


def _words_under_its_id(peer: HostilePeer) -> Lines:
    """A message of another server's user, under an id of its own."""
    return [peer.event(f"{peer.chance.choice(peer.people)}!u@h", f"PRIVMSG {_target(peer)} :{peer.lie()}")]


def _fact_of_another(peer: HostilePeer) -> Lines:
    """A fact of another server's user, under an id of its own."""
    value = json.dumps({"state": MARK}, separators=(",", ":"))
    return [peer.event(f"{peer.chance.choice(peer.people)}!u@h", f"LEDGER state {MARK} :{value}")]


def _roster_with_others(peer: HostilePeer) -> Lines:
    """A roster of its own, with users of other servers in it."""
    nick = peer.chance.choice(peer.people)
    return [
        f":{NAME} ROSTER {NAME} 5f0c2a91 {_HUGE}",
        f":{NAME} NICK {nick} 1 u h {NAME} + :{MARK}",
        f":{NAME} NJOIN {MAIN} 1 + @{nick}",
        f":{NAME} ENDROSTER {NAME}",
    ]


def _begin_again(peer: HostilePeer) -> Lines:
    return [
        peer.chance.choice(["RESUME * 0", "LINK 1 a b 1", f":{NAME} ENDROSTER {NAME}", f"LEAVE :{MARK}", "ERROR :x"])
    ]


# What only a peer with full trust may do


def _words_of_others(peer: HostilePeer) -> Lines:
    """A message of a user of a third server, in its name."""
    if not peer.others:
        return []
    nick = _others_person(peer)
    tags = "account=p0;kind=human"
    return [peer.forged(nick.partition("-")[0], f"{nick}!u@h", f"PRIVMSG {_target(peer)} :{peer.lie()}", tags)]


def _state_of_others(peer: HostilePeer) -> Lines:
    """What a third server would say of its users, its links and its facts."""
    if not peer.others:
        return []
    nick = _others_person(peer)
    server = nick.partition("-")[0]
    value = json.dumps({"state": MARK}, separators=(",", ":"))
    version = round((peer.world.now + 1e6) * 1e6)
    own_epoch = peer.epochs.get(server, "0")
    return peer.chance.choice(
        [
            [peer.forged(server, f"{nick}!u@h", f"QUIT :{MARK}")],
            [peer.forged(server, f"{nick}!u@h", f"LEDGER task {MARK} :{value}")],
            [peer.forged(server, f"{nick}!u@h", f"KICK {MAIN} {_victims_person(peer)} :{MARK}")],
            [peer.forged(server, server, f"NICK {server}-{MARK} 1 u h {server} + :{MARK}")],
            [f"@peers={NAME};epoch={own_epoch} :{server} LINKSTATE {server} {version} :{MARK}"],
            [f":{server} ROSTER {server} {own_epoch} {_HUGE}", f":{server} ENDROSTER {server}"],
        ]
    )


def _settings(peer: HostilePeer) -> Lines:
    """Modes, ranks, lists, the name and metadata of a channel, from its user or its server."""
    changes: list[list[bool | str | None]] = [
        [True, "m", None],
        [True, "k", MARK],
        [True, "l", "1"],
        [True, "b", f"{MARK}!*@*"],
        [True, "b", "*!*@*"],
        [True, "o", peer.nick()],
        [False, "o", peer.chance.choice(peer.people)],
    ]
    modes = json.dumps(peer.chance.sample(changes, 3), separators=(",", ":"))
    tags = peer.chance.choice(["v=1000000;c=1;f=im", f"v={_HUGE};c=1", ""])
    words = peer.chance.choice(
        [
            f"MODE {MAIN} :{modes}",
            f"RENAME {MAIN} #{MARK} :{MARK}",
            f"METADATA {MAIN} {MARK} * :{MARK}",
            f"KICK {MAIN} {peer.chance.choice(peer.people)} :{MARK}",
            f"INVITE {peer.chance.choice(peer.people)} {MAIN}",
            f"WALLOPS :{MARK}",
        ]
    )
    return [peer.event(peer.chance.choice([peer.user(), NAME]), words, tags)]


def _merge(peer: HostilePeer) -> Lines:
    """What the channel is set to: founded before all others, and later than all marks."""
    told = {
        "founded": 1,
        "lives": True,
        "topic": [MARK, peer.nick(), 2e9],
        "flags": "im",
        "key": MARK,
        "lists": {"b": {"*!*@*": [MARK, 2e9]}},
        "ranks": {peer.nick(): "o"},
        "meta": {MARK: MARK},
        "marks": {part: [1_000_000, 2e9, "zzz", 1] for part in ("topic", "k", "i", "m", "b:*!*@*", f"meta:{MARK}")},
    }
    return [f":{NAME} CHANNEL {MAIN} 1 1000000 :{json.dumps(told, separators=(',', ':'))}"]


def _redactions(peer: HostilePeer) -> Lines:
    """Messages of others are taken back."""
    ids = [text.partition("id=")[2].partition(";")[0] for text in list(peer.heard)[-20:] if " PRIVMSG " in text]
    return [peer.event(peer.user(), f"REDACT {MAIN} {id}") for id in ids if not id.startswith(f"{NAME}.")]


def _own_facts(peer: HostilePeer) -> Lines:
    """Facts of its own users, which only those with a say may publish."""
    value = json.dumps({"state": MARK}, separators=(",", ":"))
    return [peer.event(peer.user(), f"LEDGER task {MARK}{peer.number()} :{value}")]


Attack = Callable[[HostilePeer], Lines]

_ALWAYS: tuple[Attack, ...] = (
    _words_of_the_victim,
    _altered,
    _repeated,
    _own_state_again,
    _positions,
    _custody,
    _receipts,
    _clocks,
    _links,
    _members,
    _state_of_the_victim,
    _roster_of_the_victim,
    _questions,
    _unknown,
    _flood,
    _huge_tags,
)
_ENDINGS: tuple[Attack, ...] = (
    _garbage,
    _half_line,
    _colliding_nick,
    _taken_nick,
    _words_under_its_id,
    _fact_of_another,
    _roster_with_others,
    _begin_again,
)
_WITHOUT_AUTHORITY: tuple[Attack, ...] = (
    _words_of_others,
    _state_of_others,
    _settings,
    _merge,
    _redactions,
    _own_facts,
)
