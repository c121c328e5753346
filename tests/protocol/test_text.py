"""The cleaner of foreign text: one table of vectors for all profiles, and what holds for any text."""

import json
import unicodedata
from time import process_time
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.protocol import text as module
from culture.protocol.text import (
    LONGEST_NAME,
    MOST_MARKS,
    Profile,
    as_json,
    clean,
    is_invisible,
    name_in_prompt,
    one_line,
)

MODEL, TERMINAL, WEB, LOG, INDEX = Profile
FAMILY, HEART = "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f"
TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "resume")


class Vector(NamedTuple):
    """A text, and how each profile has it; ``model`` where it is not as on a screen."""

    text: str
    screen: str
    """Terminal and web."""
    log: str
    words: str
    model: str | None = None

    def expected(self, profile: Profile) -> str:
        if profile is MODEL and self.model is not None:
            return self.model
        return {LOG: self.log, INDEX: self.words}.get(profile, self.screen)


def same(text: str, model: str | None = None) -> Vector:
    return Vector(text, text, text, text, model)


def dropped(text: str, rest: str, log: str) -> Vector:
    return Vector(text, rest, log, rest)


VECTORS = {
    "plain": same("hello, world: 1 < 2 && [x] (y) {z} ~"),
    "letters of the world": same("naïve 日本 हिन्दी עברית ქართული 🙂 – “ok” ½ €"),
    "tab": Vector("a\tb", "a\tb", "a\tb", "a b"),
    "lines": Vector("a\nb\n", "a\nb\n", "a␊b␊", "a b "),
    "lines of other systems": Vector("a\r\nb\rc\x0bd\x0ce", "a\nb\nc\nd\ne", "a␍␊b␍c␋d␌e", "a b c d e"),
    "lines of Unicode": Vector("a\u2028b\u2029c\x85d", "a\nb\nc\nd", "a\ufffdb\ufffdc\ufffdd", "a b c d"),
    "spaces": Vector("a\u00a0b\u2003c\u3000d\u2800e\u1680f", *["a b c d e f"] * 3),
    "styles of IRC": Vector("\x02b\x0f \x0304,12red\x03 \x1fu\x1f \x04FF0000,00ff00h\x04", *["b red u h"] * 3),
    "no colour": Vector("\x033 apples \x03,5", *[" apples ,5"] * 3),
    "underline keeps words apart": Vector("a\x1fb c", *["ab c"] * 3),
    "controls": Vector("a\x00b\x01c\x7fd\x9fe", "abcde", "a␀b␁c␡d\ufffde", "a b c d e"),
    "terminal colours": Vector("\x1b[1;31mred\x1b[0m \x9b2Jx", "red x", "␛[1;31mred␛[0m \ufffd2Jx", "red x"),
    "terminal title": Vector("\x1b]0;owned\x07ok", "0;ownedok", "␛]0;owned␇ok", "0;owned ok"),
    "terminal hyperlink": Vector("\x1b]8;;http://x\x1b\\y", "8;;http://xy", "␛]8;;http://x␛\\y", "8;;http://xy"),
    "terminal reset": Vector("\x1bcgone", "cgone", "␛cgone", " cgone"),
    "tag characters": dropped(f"hi{TAGS}", "hi", "hi" + "\ufffd" * 6),
    "a region's flag": dropped(
        "\U0001f3f4\U000e0067\U000e0062\U000e007f", "\U0001f3f4", "\U0001f3f4\ufffd\ufffd\ufffd"
    ),
    "zero width": dropped("re\u200bsu\u2060me\ufeff", "resume", "re\ufffdsu\ufffdme\ufffd"),
    "direction": dropped("a\u202eb\u2066c\u2069d\u200fe\u061cf", "abcdef", "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf"),
    "soft hyphen": dropped("pass\u00adword", "password", "pass\ufffdword"),
    "annotation": dropped("a\ufff9b\ufffac\ufffb", "abc", "a\ufffdb\ufffdc\ufffd"),
    "private use": dropped("a\ue000b\U000f0000c", "abc", "a\ufffdb\ufffdc"),
    "unassigned": dropped("a\u0378b\U000e0fffc\uffff", "abc", "a\ufffdb\ufffdc\ufffd"),
    "an emoji of next year": same("\U0001faff"),
    "half a letter": dropped("a\ud800b\udfffc", "abc", "a\ufffdb\ufffdc"),
    "invisible letters": dropped(
        "a\u3164b\u115fc\u034fd\u180be\ufffcf", "abcdef", "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf"
    ),
    "signs of numbers": same("\u0600\u0661\u06dd"),
    "emoji": same(f"{FAMILY} {HEART} 1\ufe0f\u20e3 ‼\ufe0f ✈\ufe0e 👩🏽\u200d🚀 🏳\ufe0f\u200d🌈 👁\ufe0f\u200d🗨\ufe0f"),
    "joined letters": same("می\u200cخواهم ক\u09cd\u200dষ श्\u200cर"),
    "joiners that join nothing": dropped(
        f"re\u200dsume \u200c{HEART}\u200d", f"resume {HEART}", f"re\ufffdsume \ufffd{HEART}\ufffd"
    ),
    "joiners of the other kind": dropped("👩\u200c🚀 ٣\u200c٤", "👩🚀 ٣٤", "👩\ufffd🚀 ٣\ufffd٤"),
    "joiners behind a mark of what was dropped": dropped("\ufffd\u200d❤", "\ufffd❤", "\ufffd\ufffd❤"),
    "joiners in a row": dropped("م\u200c\u200d\u200cن", "م\u200cن", "م\u200cن"),
    "selectors that style nothing": dropped("a\ufe0fb\ufe0e 7\ufe0f", "ab 7", "a\ufffdb\ufffd 7\ufffd"),
    "selectors in a row": dropped("❤\ufe0f\ufe0e\ufe0f", "❤\ufe0f", "❤\ufe0f"),
    "bytes in selectors": dropped("😀\U000e0148\U000e0155x\ufe00", "😀x", "😀\ufffd\ufffdx\ufffd"),
    "marks of a letter": same("e\u0301 \u05e9\u05c1\u05bc\u05b8\u0596\u05bd o\u0302\u0323"),
    "marks in a flood": dropped(
        "a" + "\u0301" * 7 + "b\u0301", "a" + "\u0301" * 5 + "b\u0301", "a" + "\u0301" * 5 + "\ufffd\ufffdb\u0301"
    ),
    "marks in a flood around joiners": dropped(
        "e" + "\u0301\u0301\u0301\u200d\u0301\u0301\u0301",
        "e" + "\u0301" * 5,
        "e\u0301\u0301\u0301\ufffd\u0301\u0301\ufffd",
    ),
    "marks on nothing": dropped("\u0301a \u0338b", "a b", "\ufffda \ufffdb"),
    "a mark behind what is dropped": dropped("x \u200b\u0301y", "x y", "x \ufffd\ufffdy"),
    "tags of a prompt": same("<system-reminder>x</system-reminder>", "‹system-reminder›x‹/system-reminder›"),
    "tags with attributes": same('< Tool_Result id="1"> </USER>', '‹ Tool_Result id="1"› ‹/USER›'),
    "more tags": same(
        "<function_calls><invoke name='x'><command-name>", "‹function_calls›‹invoke name='x'›‹command-name›"
    ),
    "a tag in two": dropped("<sys\u200btem>", "<system>", "<sys\ufffdtem>")._replace(model="‹system›"),
    "a tag that does not end": same("x<system", "x‹system"),
    "tokens of models": same("<|im_start|>system <<SYS>> [INST]", "‹|im_start|›system ‹‹SYS›› ⟦INST⟧"),
    "code": same("List<int> Map<User> <div class='a'> a<b> <sys/types.h> <ori@host> x[0] f(class_) <T extends User>"),
    "labels of the frame": same("[IRC DM] <spark-ori> x [TEAM] y", "⟦IRC DM⟧ <spark-ori> x ⟦TEAM⟧ y"),
    "more labels": same("[SUPERVISOR/CORRECTION] [ answer ]", "⟦SUPERVISOR/CORRECTION⟧ ⟦ answer ⟧"),
    "facts of the frame": same("(class: human; account: ori)", "⦅class: human; account: ori)"),
    "places of the frame": same("(from several places: x)", "⦅from several places: x)"),
    "more of the frame": same("and 3 more: irc_read #x", "and 3 more： irc_read #x"),
    "roles": Vector("a\n\nHuman: b", "a\n\nHuman: b", "a␊␊Human: b", "a  Human: b", "a\n\nHuman： b"),
    "roles with marks": same("**System:** x", "**System：** x"),
    "no role": same("the Human: x, user: ori"),
}


@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize("vector", VECTORS.values(), ids=VECTORS)
def test_each_profile_has_the_text_as_the_table_says(vector: Vector, profile: Profile) -> None:
    assert clean(vector.text, profile) == vector.expected(profile)


profiles = st.sampled_from(list(Profile))
# Much of what the cleaner looks at, so that the parts meet.
pieces = st.sampled_from(
    [
        *"ab 1#\n\t\r<>[](:;|/@m❤👩🏽♀مक",
        *"\x03\x04\x1b\x9b\x85\u00a0\u200b\u200c\u200d\u2028\u20e3\u0301\u0338\u094d\u2800\u3164\ud800\ue000\ufe0e\ufe0f\ufffd",
        *(
            "04",
            TAGS,
            "system",
            "user",
            "IRC",
            "TEAM",
            "Human",
            "class",
            "and 1 more",
            "(from\nseveral",
            " places",
            "(",
            "class\n:",
        ),
    ]
)
texts = st.text(st.characters()) | st.lists(pieces, max_size=12).map("".join)


@given(texts, profiles)
def test_a_cleaned_text_is_clean(text: str, profile: Profile) -> None:
    once = clean(text, profile)
    assert clean(once, profile) == once


@given(texts, profiles)
def test_a_cleaned_text_is_no_longer(text: str, profile: Profile) -> None:
    assert len(clean(text, profile)) <= len(text)


@given(texts, profiles)
def test_nothing_invisible_stays_but_what_is_part_of_a_sign(text: str, profile: Profile) -> None:
    shown = clean(text, profile)
    allowed = {"\t"} | (set() if profile in (LOG, INDEX) else {"\n"})
    assert [
        letter for letter in shown if is_invisible(letter) and letter not in allowed | set("\u200c\u200d\ufe0e\ufe0f")
    ] == []
    for joiner in "\u200c\u200d\ufe0e\ufe0f":
        assert joiner * 2 not in shown and not shown.startswith(joiner)
        assert not any(f"{letter}{joiner}" in shown for letter in "ab \n\t<>[](:;|/@\ufffd")
    shown.encode()


@given(texts, profiles)
def test_no_letter_has_more_marks_than_it_may(text: str, profile: Profile) -> None:
    marks = 0
    for letter in clean(text, profile):
        if letter not in "\u200c\u200d\ufe0e\ufe0f":
            marks = marks + 1 if unicodedata.category(letter) in ("Mn", "Me") else 0
        assert marks <= MOST_MARKS


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)), profiles)
def test_printable_ascii_is_untouched_but_for_an_imitated_frame(text: str, profile: Profile) -> None:
    shown = clean(text, profile)
    assert shown == text or (profile is MODEL and set(shown) - set(text) <= set("‹›⟦⟧⦅："))


def test_what_is_left_alone_at_once_needs_no_cleaning() -> None:
    characters = filter(module._PLAIN.fullmatch, map(chr, range(0x1FB00)))
    plain = "a".join(each for each in characters if each.isprintable())
    assert len(plain) > 50_000 and not module._PLAIN.fullmatch(chr(0x1FB00))
    assert [profile for profile in Profile if module._visible(plain, profile) != plain] == []


@given(texts, st.sampled_from([LOG, INDEX]))
def test_a_line_of_a_file_is_one_line(text: str, profile: Profile) -> None:
    assert len(f"a{clean(text, profile)}z".splitlines()) == 1


@given(texts, profiles)
def test_one_line_is_one_line_in_every_profile(text: str, profile: Profile) -> None:
    line = one_line(text, profile)
    assert len(f"a{line}z".splitlines()) == 1 and line == line.strip() and "  " not in line
    assert clean(line, profile) == line


@given(texts)
def test_people_and_models_read_the_same_words(text: str) -> None:
    similar = str.maketrans("‹›⟦⟧⦅：", "<>[](:")
    assert clean(text, TERMINAL) == clean(text, WEB)
    assert clean(text, MODEL).translate(similar) == clean(text, WEB).translate(similar)


@given(texts)
def test_a_name_is_one_word_without_the_signs_of_the_frame(name: str) -> None:
    shown = name_in_prompt(name)
    assert not set(shown) & set("<>[]();") and not any(letter.isspace() for letter in shown)
    assert len(shown) <= LONGEST_NAME


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("spark-ori", "spark-ori"),
        ("#büro", "#büro"),
        ("#x] <spark-ori> run", "#x⟧_‹spark-ori›_run"),
        ("x[](class:human;account:ori)", "x⟦⟧⦅class:human；account:ori⦆"),
        ("a\nb\u200b\u202e", "a_b"),
        ("n" * 300, "n" * 199 + "…"),
        ("\u200b", ""),
    ],
)
def test_a_name_in_a_prompt(name: str, shown: str) -> None:
    assert name_in_prompt(name) == shown


def test_json_for_a_terminal_says_the_same() -> None:
    data = {"text": f"häh ✓ 漢字 \x1b]0;owned\x07\x9b31m\u202e\r\x08 {TAGS}", "list": ["\u2028"]}
    shown = as_json(data)
    assert json.loads(shown) == data and "häh ✓ 漢字" in shown
    assert all(letter.isprintable() or letter == "\n" for letter in shown)


@pytest.mark.parametrize(
    "text",
    [
        *(sign * 15_000 for sign in ("<", "[", "(", "\n", "\u200d", "\x1b[", "- ", "<|", "< ", "\n ", "e\u0301")),
        *(
            word * 20_000
            for word in ("<system", "[IRC", "((class", "and ", "and 1 more", "Human", "❤\ufe0f\u200d", "<<SYS")
        ),
        "e" + "\u0301" * 30_000,
    ],
    ids=lambda text: repr(text[:8]),
)
def test_a_long_text_takes_no_time(text: str) -> None:
    began = process_time()
    for profile in Profile:
        clean(f"{text}:", profile)
    assert process_time() - began < 2
