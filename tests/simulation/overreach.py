"""What only a peer with full trust may do, from one that has less."""

import json

from tests.simulation.hostile import HUGE, MARK, NAME, Attack, HostilePeer, Lines
from tests.simulation.workload import MAIN


def _words_of_others(peer: HostilePeer) -> Lines:
    """A message of a user of a third server, in its name."""
    if not peer.others:
        return []
    nick = peer.others_person()
    tags = "account=p0;kind=human"
    return [peer.forged(nick.partition("-")[0], f"{nick}!u@h", f"PRIVMSG {peer.target()} :{peer.lie()}", tags)]


def _state_of_others(peer: HostilePeer) -> Lines:
    """What a third server would say of its users, its links and its facts."""
    if not peer.others:
        return []
    nick = peer.others_person()
    server = nick.partition("-")[0]
    value = json.dumps({"state": MARK}, separators=(",", ":"))
    version = round((peer.world.now + 1e6) * 1e6)
    own_epoch = peer.epochs.get(server, "0")
    return peer.chance.choice(
        [
            [peer.forged(server, f"{nick}!u@h", f"QUIT :{MARK}")],
            [peer.forged(server, f"{nick}!u@h", f"LEDGER task {MARK} :{value}")],
            [peer.forged(server, f"{nick}!u@h", f"KICK {MAIN} {peer.victims_person()} :{MARK}")],
            [peer.forged(server, server, f"NICK {server}-{MARK} 1 u h {server} + :{MARK}")],
            [f"@peers={NAME};epoch={own_epoch} :{server} LINKSTATE {server} {version} :{MARK}"],
            [f":{server} ROSTER {server} {own_epoch} {HUGE}", f":{server} ENDROSTER {server}"],
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
    tags = peer.chance.choice(["v=1000000;c=1;f=im", f"v={HUGE};c=1", ""])
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
    return [peer.event(peer.user(), f"REDACT {peer.target()} {id}") for id in ids if not id.startswith(f"{NAME}.")]


def _own_facts(peer: HostilePeer) -> Lines:
    """Facts of its own users, which only those with a say may publish."""
    value = json.dumps({"state": MARK}, separators=(",", ":"))
    return [peer.event(peer.user(), f"LEDGER task {MARK}{peer.number()} :{value}")]


def _topic(peer: HostilePeer) -> Lines:
    """A topic, which users without a say may set unless +t."""
    return [peer.event(peer.user(), f"TOPIC {MAIN} :topic of {NAME} {peer.number()}", peer.chance.choice(["", "v=9"]))]


FOR_OTHERS: tuple[Attack, ...] = (_words_of_others, _state_of_others)
"""What a third server alone says, as long as it is linked itself."""
OVERREACHES: tuple[Attack, ...] = (
    _settings,
    _merge,
    _redactions,
    _own_facts,
    _topic,
)
