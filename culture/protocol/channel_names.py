"""Rules for the name of a new channel: allowed characters, and names that people confuse.

``names.valid_channel`` is the grammar and is checked for every name. The rules here are checked once, when a channel is
founded on this server; a channel that exists already, or that another server founded, is used as it is.

Two names are confusable if they share a skeleton: the NFKC form of the name, with case folded, and with each letter
that looks like a Latin one in common fonts replaced by that one. ``#AI`` has two skeletons, ``#al`` (its capital I
looks like a small L) and ``#ai`` (people read names without regard to case). The tables have Cyrillic and Greek
letters, a few Armenian ones, small capitals and, of ASCII, ``I``, ``1``, ``|`` and ``0``. They are short on purpose:
they stop a copy of a room's name, and leave people free to name rooms in their own language. Accents count: ``#cafe``
and ``#café`` are different to the eye.
"""

import unicodedata

from culture.protocol.text import is_invisible

_REFUSED = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})

_ASCII = {"I": "l", "1": "l", "|": "l", "0": "o"}
_CAPITALS = {
    # whose small letter looks like another Latin letter, or like none
    "Һ": "h", "І": "l", "Ӏ": "l", "Ү": "y",  # Cyrillic
    "Β": "b", "Ζ": "z", "Η": "h", "Ι": "l", "Μ": "m", "Ν": "n", "Υ": "y",  # Greek
}  # fmt: skip
_SMALL = {
    # Cyrillic; в, к, м, н and т for their capitals
    "а": "a", "в": "b", "с": "c", "ԁ": "d", "е": "e", "һ": "h", "н": "h", "і": "i", "ј": "j", "к": "k", "ӏ": "l",
    "м": "m", "о": "o", "р": "p", "ԛ": "q", "г": "r", "ѕ": "s", "т": "t", "ѵ": "v", "ԝ": "w", "х": "x", "у": "y",
    "ү": "y", "з": "3",
    # Greek
    "α": "a", "ε": "e", "ι": "i", "κ": "k", "η": "n", "ο": "o", "ρ": "p", "τ": "t", "υ": "u", "ν": "v", "ω": "w",
    "χ": "x", "γ": "y",
    # Armenian
    "օ": "o", "ս": "u", "ո": "n", "հ": "h",
    # Latin beyond ASCII, with the small capitals that look like their small letters
    "ɑ": "a", "ɡ": "g", "ı": "i", "ǀ": "l", "ᴄ": "c", "ᴏ": "o", "ꜱ": "s", "ᴠ": "v", "ᴡ": "w", "ᴢ": "z",
}  # fmt: skip
_ASCII_TABLE = str.maketrans(_ASCII)
_CAPITAL_TABLE = str.maketrans(_ASCII | _CAPITALS)
_SMALL_TABLE = str.maketrans(_SMALL)


def fault_in(name: str) -> str | None:
    """Return why a new channel may not have this name, as a sentence for people; None if it may."""
    if name.isascii():
        return None  # names.valid_channel has refused controls and spaces
    for character in name:
        if not character.isascii() and _is_refused(character):
            return (
                "A channel name has no spaces and no invisible or unassigned characters: "
                f"{_described(character)} is in this one"
            )
    if not unicodedata.is_normalized("NFC", name):
        return "A channel name is written in Unicode normal form C: this one has a letter and its accent apart"
    return None


def _is_refused(character: str) -> bool:
    return unicodedata.category(character) in _REFUSED or is_invisible(character)


def _described(character: str) -> str:
    name = unicodedata.name(character, "")
    return f"U+{ord(character):04X} {name}".rstrip()


def skeletons(name: str) -> tuple[str, ...]:
    """Return the skeletons of a channel name: two names with a common skeleton look alike.

    A skeleton has each character replaced by the simplest one that looks like it.
    """
    if name.isascii():
        as_written = name.translate(_ASCII_TABLE).lower()
        folded = name.lower().translate(_ASCII_TABLE)
    else:
        plain = unicodedata.normalize("NFKC", name)
        as_written = _reduced(plain.translate(_CAPITAL_TABLE))
        folded = _reduced(plain.casefold().translate(_CAPITAL_TABLE))
    return (as_written,) if as_written == folded else (as_written, folded)


def _reduced(text: str) -> str:
    return unicodedata.normalize("NFKC", text.casefold().translate(_SMALL_TABLE))
