"""What is said in twenty channels and between fifty speakers, word by word as words are used; always the same."""

import random
from collections.abc import Iterator, Sequence
from itertools import accumulate

from culture.skills.history.entry import Entry, conversation, party

CHANNELS = tuple(f"#room{number}" for number in range(20))
QUIET = "#quiet"
"""A channel where one message in ten thousand is said."""
SPEAKERS = tuple(f"speaker{number}" for number in range(50))
COMMON, RARE = "the", "serendipity"
MARKED = ("C++", "it's", "spark-harper", "日本語", "👍")
START = 1_750_000_000_000_000
_STEP = 40_000  # microseconds between two, on average
_SYLLABLES = ("ba", "do", "fe", "gi", "ku", "la", "mo", "ne", "pi", "ro", "su", "ta", "ve", "xi", "zo", "the")
_WORDS = 20_000


def vocabulary() -> list[str]:
    """Words, the most usual first."""
    dice = random.Random(1)
    made = dict.fromkeys(("the", "a", "to", "of", "and", "is", "it", "in", "that", "because", "we", "not"))
    while len(made) < _WORDS:
        made["".join(dice.choices(_SYLLABLES, k=dice.choice((2, 3, 3, 4))))] = None
    return list(made)


def zipf(size: int) -> list[float]:
    """How much more often than the following each is used, added up."""
    return list(accumulate(1 / rank for rank in range(1, size + 1)))


def speech(count: int) -> Iterator[Entry]:
    """So many entries in the order of time: 5 % events, 2 % private, the rest said in channels."""
    dice = random.Random(2)
    words, used = vocabulary(), zipf(_WORDS)
    busy = zipf(len(CHANNELS))
    at = START
    for seq in range(count):
        at += dice.randrange(1, 2 * _STEP)
        speaker = dice.choice(SPEAKERS)
        place = QUIET if seq % 10_000 == 5_000 else dice.choices(CHANNELS, cum_weights=busy)[0]
        base = Entry(place, "spark", "e1", seq, at, "PRIVMSG", f"{speaker}!u@host", speaker, "", "", place)
        kind = dice.random()
        if kind < 0.05:
            yield base._replace(verb=dice.choice(("JOIN", "PART")))
        elif kind < 0.07:
            yield _private(base, dice.choice(SPEAKERS), _text(dice, words, used, seq))
        else:
            yield base._replace(text=_text(dice, words, used, seq))


def _text(dice: random.Random, words: Sequence[str], used: Sequence[float], seq: int) -> str:
    said = dice.choices(words, cum_weights=used, k=dice.randrange(3, 16))
    if seq % 200 == 0:
        said.append(dice.choice(MARKED))
    if seq % 50_000 == 100:
        said.append(RARE)
    return " ".join(said)


def _private(base: Entry, other: str, text: str) -> Entry:
    place = conversation(party(base.account, base.nick), party(other, other))
    return base._replace(place=place, target=other, text=text)
