"""Nicks, channels and how they compare."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.protocol.names import (
    fold,
    is_channel,
    name_part,
    nearest,
    owner,
    reserved,
    short_name,
    valid_channel,
    valid_local_nick,
    valid_nick,
    valid_short_name,
)


@given(st.text())
def test_folding_changes_ascii_capitals_and_nothing_else(name: str) -> None:
    """CASEMAPPING=ascii: ``[`` and ``{`` are two characters, É and é too"""
    expected = "".join(chr(ord(c) + 32) if c in string.ascii_uppercase else c for c in name)
    assert fold(name) == expected
    assert fold(fold(name)) == fold(name)


def test_a_target_with_a_hash_is_a_channel() -> None:
    assert is_channel("#general")
    assert not is_channel("spark-ori")
    assert not is_channel("&local")
    assert not is_channel("")


@pytest.mark.parametrize("name", ["#a", "#general", "#work-17", "#é", "#" + "x" * 63, "#a:b", "##", "#日本"])
def test_a_channel_may_be_called(name: str) -> None:
    """RFC 2812 §1.3"""
    assert valid_channel(name)


@pytest.mark.parametrize(
    "name",
    [
        *["", "#", "general", "&a", "#a b", "#a,b", "#a\x07", "#a\0", "#a\r", "#a\n", "#\x1f", "#\x7f", "#\x85"],
        *["#\ud800", "#" + "x" * 64, "#" + "é" * 32],
    ],
)
def test_a_channel_may_not_be_called(name: str) -> None:
    """RFC 2812 §1.3; 64 bytes"""
    assert not valid_channel(name)


@pytest.mark.parametrize("nick", ["a", "Ori", "[a]", "a-b", "a1", "_x", "`{}|^\\", "x" * 32])
def test_a_nick_where_no_prefix_is_demanded(nick: str) -> None:
    """RFC 2812 §2.3.1"""
    assert valid_nick(nick)


@pytest.mark.parametrize("nick", ["", "1a", "-a", "a b", "a!b", "a@b", "#a", "@a", "*", "a,b", "a.b", "a\n", "x" * 33])
def test_what_is_no_nick(nick: str) -> None:
    """RFC 2812 §2.3.1"""
    assert not valid_nick(nick)


@pytest.mark.fault("A15")
@pytest.mark.parametrize("name", ["\u043eri", "or\u0456", "\uff4fri", "ori\u200b", "\u017fam", "\u212aim", "o\u0301ri"])
def test_no_nick_looks_or_folds_like_another(name: str) -> None:
    """A15: Cyrillic o and i, full-width o, zero-width space, long s, the Kelvin sign, a combining accent"""
    assert not valid_nick(name)
    assert not valid_local_nick(f"spark-{name}", "spark")


@pytest.mark.parametrize(
    ("nick", "is_local"),
    [
        ("spark-ori", True),
        ("SPARK-Ori", True),
        ("spark-2", True),
        ("spark-a_b-c", True),
        ("spark-" + "x" * 26, True),
        ("spark-" + "x" * 27, False),
        ("thor-ori", False),
        ("spark", False),
        ("spark-", False),
        ("sparkori", False),
        ("spark--a", False),
        ("spark-_a", False),
        ("spark2-ori", False),
        ("-ori", False),
        ("", False),
        ("spark-o[r]i", False),
        ("spark-ori\n", False),
        ("\uff53park-ori", False),
    ],
)
def test_a_local_nick_has_the_server_in_front(nick: str, is_local: bool) -> None:
    """Decision 1"""
    assert valid_local_nick(nick, "spark") is is_local


@pytest.mark.requirement("A10")
@given(
    st.from_regex(r"[a-z][a-z0-9]{0,11}", fullmatch=True),
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,18}", fullmatch=True),
)
def test_a_nick_tells_its_server(server: str, name: str) -> None:
    """Decision 1: the text before the first hyphen, so two servers never make one nick"""
    nick = f"{server}-{name}"
    assert valid_short_name(server)
    assert valid_local_nick(nick, server)
    assert (owner(nick), name_part(nick)) == (server, name)


@pytest.mark.parametrize("name", ["", "2spark", "spark-2", "Spark", "spark.local", "s" * 13, "spärk", "spark\n"])
def test_no_server_goes_by_such_a_name(name: str) -> None:
    """Decision 1"""
    assert not valid_short_name(name)


def test_the_first_label_is_the_short_name() -> None:
    assert short_name("spark.local") == "spark"
    assert short_name("spark") == "spark"


@pytest.mark.fault("A15")
@pytest.mark.parametrize("nick", ["server", "Human", "*", "ALL", "spark-human", "spark-All", "thor-server", "everyone"])
def test_some_names_are_for_nobody(nick: str) -> None:
    """A15: reserved names"""
    assert reserved(nick)


@pytest.mark.parametrize("nick", ["spark-ori", "humane", "server-2", "spark-human-2", "allen", "spark-allen"])
def test_most_names_are_free(nick: str) -> None:
    assert not reserved(nick)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("spark-orl", "spark-ori"),
        ("SPARK-ROI", "spark-ori"),
        ("ori", "spark-ori"),
        ("#genral", "#General"),
        ("#zzz", None),
        ("", None),
        ("thor-margaret", None),
    ],
)
def test_the_nearest_name_is_the_one_meant(wrong: str, right: str | None) -> None:
    assert nearest(wrong, ["spark-ori", "spark-claude", "#General", "#alerts"]) == right
