"""What ends the link of the hostile peer: lines that are none, and what the protocol forbids."""

import json

from tests.simulation.hostile import HUGE, MARK, NAME, Attack, HostilePeer, Lines
from tests.simulation.workload import MAIN


def _half_line(peer: HostilePeer) -> Lines:
    """A part of a line, and the rest of it with the next attack."""
    return [f"@id={NAME}.0.".encode(), *peer.talk()]


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
    return [peer.event(f"{peer.chance.choice(peer.people)}!u@h", f"PRIVMSG {peer.target()} :{peer.lie()}")]


def _fact_of_another(peer: HostilePeer) -> Lines:
    """A fact of another server's user, under an id of its own."""
    value = json.dumps({"state": MARK}, separators=(",", ":"))
    return [peer.event(f"{peer.chance.choice(peer.people)}!u@h", f"LEDGER state {MARK} :{value}")]


def _roster_with_others(peer: HostilePeer) -> Lines:
    """A roster of its own, with users of other servers in it."""
    nick = peer.chance.choice(peer.people)
    return [
        f":{NAME} ROSTER {NAME} 5f0c2a91 {HUGE}",
        f":{NAME} NICK {nick} 1 u h {NAME} + :{MARK}",
        f":{NAME} NJOIN {MAIN} 1 + @{nick}",
        f":{NAME} ENDROSTER {NAME}",
    ]


def _begin_again(peer: HostilePeer) -> Lines:
    return [
        peer.chance.choice(["RESUME * 0", "LINK 1 a b 1", f":{NAME} ENDROSTER {NAME}", f"LEAVE :{MARK}", "ERROR :x"])
    ]


ENDINGS: tuple[Attack, ...] = (
    _garbage,
    _half_line,
    _colliding_nick,
    _taken_nick,
    _words_under_its_id,
    _fact_of_another,
    _roster_with_others,
    _begin_again,
)
