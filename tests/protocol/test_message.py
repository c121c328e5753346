"""Lines ↔ messages."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from culture.protocol.message import NO_TAGS, Message, ProtocolError, escape, format_tags, unescape

FORBIDDEN = "\r\n\0"
characters = st.characters(exclude_characters=FORBIDDEN, exclude_categories=["Cs"])
anything = st.text(characters)
words = st.text(st.characters(exclude_characters=FORBIDDEN + " ", exclude_categories=["Cs"]), min_size=1)
middles = words.filter(lambda word: word[0] != ":")
verbs = st.from_regex(r"[A-Z]{1,12}|[0-9]{3}", fullmatch=True)
keys = st.text(
    st.characters(exclude_characters=FORBIDDEN + " ;=", exclude_categories=["Cs"]),
    min_size=1,
)
values = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
params = st.builds(lambda middle, last: (*middle, *last), st.lists(middles), st.lists(anything, max_size=1))
messages = st.builds(
    Message, verbs, params, words | st.just(""), st.dictionaries(keys, values, min_size=1) | st.just(NO_TAGS)
)


@pytest.mark.requirement("A06")
@given(messages)
def test_a_message_survives_the_wire(message: Message) -> None:
    """RFC 2812 §2.3.1, IRCv3 message-tags"""
    assert Message.parse(str(message)) == message


@given(st.text(st.characters(exclude_characters=FORBIDDEN, exclude_categories=["Cs"]), max_size=60))
def test_any_line_is_read_or_refused_and_what_is_read_is_stable(line: str) -> None:
    try:
        message = Message.parse(line)
    except ProtocolError:
        return
    try:
        written = str(message)
    except ValueError:
        # A verb that looks like a source or like tags can be read behind others, never written.
        assert message.verb[0] in ":@"
    else:
        assert Message.parse(written) == message


@given(st.lists(st.sampled_from(["@a=b", "@", ":src", ":", "PING", "x", "", " ", "::y", "@t"]), max_size=8))
def test_the_quick_way_and_the_thorough_way_agree(parts: list[str]) -> None:
    """A space in front makes no difference to the meaning, but takes the thorough way."""
    line = " ".join(parts)

    def outcome(line: str) -> Message | None:
        try:
            return Message.parse(line)
        except ProtocolError:
            return None

    assert outcome(line) == outcome(" " + line)


SPLIT = [
    ("foo", Message("FOO")),
    ("foo bar baz asdf", Message("FOO", ("bar", "baz", "asdf"))),
    ("foo bar baz :asdf quux", Message("FOO", ("bar", "baz", "asdf quux"))),
    ("foo bar baz :", Message("FOO", ("bar", "baz", ""))),
    ("foo bar baz ::asdf", Message("FOO", ("bar", "baz", ":asdf"))),
    ("foo bar baz :  asdf quux ", Message("FOO", ("bar", "baz", "  asdf quux "))),
    ("foo :", Message("FOO", ("",))),
    ("foo b:ar", Message("FOO", ("b:ar",))),
    (":coolguy foo bar baz asdf", Message("FOO", ("bar", "baz", "asdf"), "coolguy")),
    (":coolguy foo bar baz :asdf quux", Message("FOO", ("bar", "baz", "asdf quux"), "coolguy")),
    (":src AWAY", Message("AWAY", (), "src")),
    (":src AWAY ", Message("AWAY", (), "src")),
    (":src JOIN #chan", Message("JOIN", ("#chan",), "src")),
    (":src JOIN :#chan", Message("JOIN", ("#chan",), "src")),
    (":cool\tguy foo bar baz", Message("FOO", ("bar", "baz"), "cool\tguy")),
    (
        ":coolguy!ag@net\x035w\x03ork.admin PRIVMSG foo :bar baz",
        Message("PRIVMSG", ("foo", "bar baz"), "coolguy!ag@net\x035w\x03ork.admin"),
    ),
    ("PRIVMSG #a \x1funder\x1f", Message("PRIVMSG", ("#a", "\x1funder\x1f"))),
    ("JOIN  #a   key ", Message("JOIN", ("#a", "key"))),
    ("  PING x", Message("PING", ("x",))),
    ("MODE #a +b   :two words", Message("MODE", ("#a", "+b", "two words"))),
    ("@a=b;c=32;k;rt=ql7 foo", Message("FOO", tags={"a": "b", "c": "32", "k": "", "rt": "ql7"})),
    (r"@a=b\\and\nk;c=72\s45;d=gh\:764 foo", Message("FOO", tags={"a": "b\\and\nk", "c": "72 45", "d": "gh;764"})),
    ("@c;h=;a=b :quux ab cd", Message("AB", ("cd",), "quux", {"c": "", "h": "", "a": "b"})),
    (
        "@tag1=value1;tag2;vendor1/tag3=value2 PING",
        Message("PING", tags={"tag1": "value1", "tag2": "", "vendor1/tag3": "value2"}),
    ),
    ("@+a/b=1;+a/b=2 PING", Message("PING", tags={"+a/b": "2"})),
    ("@a=b=c PING", Message("PING", tags={"a": "b=c"})),
    ("@;;a;=x PING", Message("PING", tags={"a": ""})),
    ("@ PING", Message("PING")),
    ("@a :src  PING  x", Message("PING", ("x",), "src", {"a": ""})),
]


@pytest.mark.requirement("A06")
@pytest.mark.parametrize(("line", "expected"), SPLIT, ids=[line for line, _ in SPLIT])
def test_a_line_falls_into_its_parts(line: str, expected: Message) -> None:
    """RFC 2812 §2.3.1; the cases everybody who wrote a parser tripped over"""
    assert Message.parse(line) == expected


@pytest.mark.parametrize("line", ["", " ", ":src", ":src ", "@a=b", "@a=b :src", "@a=b  ", ":", "@", " :", " :x"])
def test_a_line_without_a_verb_is_refused(line: str) -> None:
    with pytest.raises(ProtocolError):
        Message.parse(line)


def test_a_line_without_tags_shares_the_empty_ones() -> None:
    assert Message.parse("PING x").tags is NO_TAGS
    assert Message.parse(":a PING  x").tags is NO_TAGS


def test_only_ascii_spells_a_verb() -> None:
    """The long s becomes S in capitals."""
    assert Message.parse("pa\u017fs x").verb == "pa\u017fs"
    assert Message.parse(":src pa\u017fs x").verb == "pa\u017fs"


JOIN = [
    (Message("FOO", ("bar", "baz", "asdf")), "FOO bar baz asdf"),
    (Message("FOO", ("bar", "baz", "")), "FOO bar baz :"),
    (Message("FOO", ("bar", "baz", "asdf quux")), "FOO bar baz :asdf quux"),
    (Message("FOO", ("bar", ":asdf")), "FOO bar ::asdf"),
    (Message("FOO", ("bar", " ")), "FOO bar : "),
    (Message("FOO", ("b:ar",), "src"), ":src FOO b:ar"),
    (Message("FOO", (), "", {"a": "b", "c": ""}), "@a=b;c FOO"),
    (Message("PING", ("x",), "s", {"t": "; \\\r\n"}), r"@t=\:\s\\\r\n :s PING x"),
]


@pytest.mark.parametrize(("message", "line"), JOIN, ids=[line for _, line in JOIN])
def test_the_parts_become_a_line(message: Message, line: str) -> None:
    assert str(message) == line
    assert bytes(message) == line.encode() + b"\r\n"


def test_the_wire_is_utf8() -> None:
    assert bytes(Message("PRIVMSG", ("#a", "né 🙂"))) == "PRIVMSG #a :né 🙂\r\n".encode()


@pytest.mark.parametrize("bad", ["\r", "\n", "\0", "\r\nQUIT"])
@pytest.mark.parametrize(
    "make",
    [
        lambda bad: Message("PING" + bad),
        lambda bad: Message("PING", ("x" + bad,)),
        lambda bad: Message("PING", ("x" + bad, "y")),
        lambda bad: Message("PING", ("x", "y z" + bad)),
        lambda bad: Message("PING", ("x",), "src" + bad),
        lambda bad: Message("PING", ("x",), "src", {"k" + bad: "v"}),
    ],
    ids=["verb", "only", "middle", "last", "source", "key"],
)
def test_nothing_can_end_a_line_early(make: Callable[[str], Message], bad: str) -> None:
    """No text may ever become a second command."""
    with pytest.raises(ValueError, match="CR, LF and NUL"):
        str(make(bad))


@pytest.mark.parametrize(
    "message",
    [
        Message(""),
        Message("TWO WORDS"),
        Message(":PING"),
        Message("@PING"),
        Message("PING", ("", "x")),
        Message("PING", ("a b", "x")),
        Message("PING", (":a", "x")),
        Message("PING", (), "a b"),
        Message("PING", tags={"": "x"}),
        Message("PING", tags={"a b": "x"}),
        Message("PING", tags={"a;b": "x"}),
        Message("PING", tags={"a=b": ""}),
        Message("PING", tags={"a": "\0"}),
    ],
    ids=repr,
)
def test_what_would_be_read_differently_is_not_written(message: Message) -> None:
    with pytest.raises(ValueError):
        str(message)


@given(values)
@example("\\")
@example("\\s")
def test_a_tag_value_survives_escaping(value: str) -> None:
    """IRCv3 message-tags, Escaping values"""
    escaped = escape(value)
    assert unescape(escaped) == value
    assert not set(escaped) & set("; \r\n")


@pytest.mark.fault("A11")
@pytest.mark.parametrize(
    ("escaped", "value"),
    [
        (r"\b", "b"),
        ("a\\", "a"),
        ("\\", ""),
        (r"\\\\", r"\\"),
        (r"\\s", r"\s"),
        (r"a\:b\sc\r\n", "a;b c\r\n"),
        (r"\é", "é"),
    ],
)
def test_an_unknown_escape_is_its_character(escaped: str, value: str) -> None:
    """A11: unknown escapes"""
    assert unescape(escaped) == value


def test_no_tags_are_no_text() -> None:
    assert format_tags(NO_TAGS) == ""
