"""What the hostile peer (``hostile.py``) sends: each attack returns some lines, and bytes that are no whole line.

Here are those that no peer may make, or that gain it nothing, whatever its trust. A peer with full trust is believed
like a server of one's own: its users may set modes, kick, and take messages back, and it may speak for servers that are
not linked here. What only such a peer may do is in ``overreach.py``, and is done by others. What ends the link is in
``garbage.py``.
"""

from culture.protocol.message import Message
from culture.server.events import nick_of
from tests.simulation.garbage import ENDINGS
from tests.simulation.hostile import GHOST, HUGE, MARK, NAME, Attack, HostilePeer, Lines
from tests.simulation.overreach import FOR_OTHERS, OVERREACHES
from tests.simulation.workload import MAIN

_FLOOD = 200
_CHANNELS = 30
_ENDING = 0.12
"""How often an attack is one that ends the link."""
_TALK = 0.25


def choose(peer: HostilePeer) -> Lines:
    """Return the lines of one attack, or of a user of its own who just talks."""
    chance = peer.chance.random()
    if chance < _TALK:
        return peer.talk()
    if chance < _TALK + _ENDING:
        return peer.chance.choice(ENDINGS)(peer)
    attacks = _ALWAYS if peer.may_speak_for_others else _ALWAYS + FOR_OTHERS
    return peer.chance.choice(attacks if peer.trust == "full" else attacks + OVERREACHES)(peer)


def _words_of_the_victim(peer: HostilePeer) -> Lines:
    """A message of a user of the victim, with no seal, a made-up one, or that of another message."""
    seals = [tag for line in peer.heard for tag in line[1:].partition(" ")[0].split(";") if tag.startswith("seal=")]
    seal = peer.chance.choice(["", "seal=00112233445566778899aabbccddeeff", *seals[-3:]])
    return [
        peer.forged(peer.victim.name, f"{peer.victims_person()}!u@h", f"PRIVMSG {peer.target()} :{peer.lie()}", seal)
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
    lines = [f"ACK {HUGE} {HUGE}", f"EOBACKFILL {HUGE}", f"GAP {HUGE}", f"ACK 0 {HUGE}"]
    said = f"{NAME} says {peer.number()}"
    return [peer.chance.choice(lines), peer.event(peer.user(), f"PRIVMSG {MAIN} :{said}", f"n={HUGE}")]


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
    version = peer.chance.choice([1, HUGE, round((peer.world.now + 1e6) * 1e6)])
    name = peer.victim.name
    return [
        peer.link_state([name, *peer.others, GHOST]),
        f"@peers={NAME};epoch={peer.epochs.get(name, '0')} :{name} LINKSTATE {name} {version} :{MARK}",
        f"@peers={NAME};epoch=0 :{GHOST} LINKSTATE {GHOST} {version} :{MARK}",
    ]


def _members(peer: HostilePeer) -> Lines:
    """Users of other servers come into the channel, or leave it."""
    nicks = ",".join(peer.people)
    return [f":{NAME} {peer.chance.choice(('MEMBERS', 'NPART'))} {MAIN} {nicks}"]


def _state_of_the_victim(peer: HostilePeer) -> Lines:
    """Users of the victim leave, are renamed, and have another account."""
    nick = peer.victims_person()
    words = peer.chance.choice([f"QUIT :{MARK}", f"NICK {peer.victim.name}-{MARK}", f"ACCOUNT {MARK} human", "PART #x"])
    return [peer.forged(peer.victim.name, f"{nick}!u@h", words)]


def _roster_of_the_victim(peer: HostilePeer) -> Lines:
    """The victim has no users, or others."""
    name = peer.victim.name
    arrived = f"@account=p0;kind=human :{name} NICK {name}-{MARK} 1 u h {name} + :{MARK}"
    end = f":{name} ENDROSTER {name}"
    return [f":{name} ROSTER {name} {peer.epochs.get(name, '0')} {HUGE}", arrived, end]


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


def _own_collision(peer: HostilePeer) -> Lines:
    """A user of its own takes the nick of another one, and arrives once more."""
    one, other = peer.nick(0), peer.nick(1)
    return [peer.event(f"{one}!user@host", f"NICK {other}"), *peer.arrival(0)]


def _own_state(peer: HostilePeer) -> Lines:
    """What its own users may say of themselves, with the names of others in it."""
    words = ["AWAY :at lunch", "AWAY", "SETNAME :Somebody else", "CHGHOST root localhost", "ACCOUNT p0 human"]
    return [peer.event(peer.user(), peer.chance.choice([*words, f"METADATA {peer.nick()} key * :value"]))]


def _channels(peer: HostilePeer) -> Lines:
    """Many channels that nobody else is in."""
    user, first = peer.user(), peer.number()
    joins = [peer.event(user, f"JOIN #made{first}-{at} +o :Somebody", "v=1;c=1;f=n") for at in range(_CHANNELS)]
    parts = [peer.event(user, f"PART #made{first}-{at}") for at in range(1, _CHANNELS)]
    return [*joins, *parts]


def _servers_behind(peer: HostilePeer) -> Lines:
    """A server behind it that there is not, with a user who talks."""
    nick = f"{GHOST}-u0"
    source = f"{nick}!user@host"
    at = peer.number()
    return [
        peer.link_state([peer.victim.name, GHOST]),
        f"@peers={NAME};epoch=0 :{GHOST} LINKSTATE {GHOST} {round(peer.world.now * 1e6)} :a server",
        f":{GHOST} ROSTER {GHOST} 0 {at}",
        f"@account=p0;kind=human :{GHOST} NICK {nick} 1 user host {GHOST} + :Somebody",
        f":{GHOST} NJOIN {MAIN} 1 + @{nick}",
        f":{GHOST} ENDROSTER {GHOST}",
        peer.stamped(GHOST, "0", at, source, f"PRIVMSG {MAIN} :{nick} says {at}", "kind=human"),
        peer.stamped(GHOST, "0", at + 1, source, f"PRIVMSG {peer.target()} :{nick} says {at}", "kind=human"),
    ]


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
    _own_collision,
    _own_state,
    _channels,
    _servers_behind,
)
