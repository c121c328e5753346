"""Whom a text calls (decision 5)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.protocol.mentions import calls_all, may_mention, mentions

ORI, CLAUDE, ADA, BOB, BOB2 = MEMBERS = ("spark-ori", "Spark-Claude", "thor-ada", "spark-bob", "thor-bob")

CALLED = [
    ("@spark-ori hello", ORI),
    ("hello @spark-ori", ORI),
    ("@SPARK-ORI", ORI),
    ("@spark-claude", CLAUDE),
    ("(@spark-ori)", ORI),
    ("[@spark-ori]", ORI),
    ("{@spark-ori}", ORI),
    ('"@spark-ori"', ORI),
    ("*@spark-ori*", ORI),
    ("_@spark-ori_", ORI),
    ("|@spark-ori|", ORI),
    ("@spark-ori's", ORI),
    ("@spark-ori, look", ORI),
    ("@spark-ori: look", ORI),
    ("@spark-ori.", ORI),
    ("@spark-ori-", ORI),
    ("well...@spark-ori", ORI),
    ("\x02@spark-ori\x02", ORI),
    ("\x0304,12@spark-ori\x03", ORI),
    ("你好@spark-ori你好", ORI),
    ("@ori", ORI),
    ("@Ada @ori", ADA, ORI),
    ("@spark-ori/@thor-ada", ORI, ADA),
    ("@thor-ada and @spark-ori and @ada again", ADA, ORI),
    ("spark-ori: look", ORI),
    ("Spark-Ori:", ORI),
    ("look at this\nspark-ori: yes you", ORI),
    ("`code` @spark-ori", ORI),
    ("it`s @spark-ori", ORI),
    ("it`s @spark-ori\nit`s", ORI),
    ("```\ncode\n``` @spark-ori", ORI),
    ("https://example.org/@thor-ada @spark-ori", ORI),
    ("@spark-bob", BOB),
]

NOT_CALLED = [
    "",
    "hello",
    "spark-ori",
    "spark-ori hello",
    "ori: hello",
    "well, spark-ori: hello",
    " spark-ori: hello",
    "spark-ori:hello",
    "@spark-ori-2",
    "@spark-ori2",
    "@spark-orié",
    "@spark",
    "@bob",
    "@nobody",
    "mail ori@spark-ori please",
    "é@spark-ori",
    "@@spark-ori",
    "@ spark-ori",
    "`@spark-ori`",
    "``a ` @spark-ori``",
    "```\n@spark-ori\n```",
    "```\n@spark-ori and no end",
    "````\n```\n@spark-ori\n````",
    "https://example.org/@spark-ori",
    "irc://example.org/@spark-ori?x",
    "@all",
    "12:30",
]


@pytest.mark.parametrize("case", CALLED, ids=[case[0] for case in CALLED])
def test_a_text_calls(case: tuple[str, ...]) -> None:
    text, *nicks = case
    assert mentions(text, MEMBERS) == tuple(nicks)
    assert may_mention(text)


@pytest.mark.parametrize("text", NOT_CALLED)
def test_a_text_calls_nobody(text: str) -> None:
    assert mentions(text, MEMBERS) == ()


def test_a_nick_comes_before_a_name() -> None:
    assert mentions("@ori", ["spark-ori", "ori"]) == ("ori",)


def test_a_nick_may_end_in_a_bracket() -> None:
    assert mentions("@ori] and @ori", ["ori]", "ori"]) == ("ori]", "ori")


@pytest.mark.parametrize("text", ["@all hello", "hello @ALL!", "(@all)", "[@all]", "@nobody @all"])
def test_everybody_is_called(text: str) -> None:
    assert calls_all(text)


@pytest.mark.parametrize("text", ["all: hello", "@allen", "@all-hands", "`@all`", "x@all", "hello", "@al l"])
def test_not_everybody_is_called(text: str) -> None:
    assert not calls_all(text)


@given(st.text(), st.lists(st.sampled_from(MEMBERS), unique=True))
def test_only_members_are_called_and_each_once(text: str, members: list[str]) -> None:
    called = mentions(text, members)
    assert len(set(called)) == len(called)
    assert set(called) <= set(members)


@given(st.text(st.characters(categories=["Z", "P"], exclude_characters="`@-_[]{}\\/#")), st.sampled_from(MEMBERS))
def test_punctuation_around_a_nick_does_not_hide_it(around: str, nick: str) -> None:
    assert nick in mentions(f"{around}@{nick}{around}", MEMBERS)


@given(st.text("`@:/ \nab", max_size=300))
def test_no_quick_look_misses_a_call(text: str) -> None:
    if mentions(text, ["a", "b", "ab"]):
        assert may_mention(text)


def test_fifty_kilobytes_are_read_in_no_time() -> None:
    """Runs of backticks that never close, and a thousand names"""
    runs = "".join("x" + "`" * length for length in range(1, 300))
    assert mentions(runs + " @spark-ori", MEMBERS) in ((), (ORI,))
    assert mentions("@nobody " * 6000, MEMBERS) == ()
