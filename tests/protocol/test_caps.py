"""Capability negotiation."""

import gc
from itertools import pairwise
from weakref import ref

from hypothesis import given
from hypothesis import strategies as st

from culture.protocol.caps import NOTHING, Capability, Negotiation, lines

OFFERED: dict[str, str | None] = {"cap-notify": None, "echo-message": None, "batch": None, "sasl": "PLAIN,EXTERNAL"}


def test_a_new_session_has_agreed_on_nothing() -> None:
    session = Negotiation()
    assert (session.version, session.enabled, session.pending) == (0, frozenset(), False)


def test_registration_waits_from_the_first_question_to_the_end() -> None:
    """IRCv3 capability negotiation, CAP LS and CAP END"""
    session = Negotiation()
    session.begin()
    assert session.pending
    session.end()
    assert not session.pending
    session.request(["nonsense"], OFFERED)
    assert session.pending


def test_a_request_is_agreed_to_whole() -> None:
    session = Negotiation()
    assert session.request(["echo-message", "batch"], OFFERED)
    assert session.enabled == {"echo-message", "batch"}
    assert session.request(["-batch", "sasl"], OFFERED)
    assert session.enabled == {"echo-message", "sasl"}
    assert session.request([], OFFERED)


def test_or_not_at_all() -> None:
    session = Negotiation()
    session.request(["batch"], OFFERED)
    for words in (["echo-message", "foo"], ["-batch", "foo"], ["-foo"], ["sasl=PLAIN"], [""], ["-"]):
        assert not session.request(words, OFFERED)
        assert session.enabled == {"batch"}


def test_version_302_brings_cap_notify_for_good() -> None:
    """IRCv3 cap-notify: implicit, and cannot be given up"""
    session = Negotiation()
    session.begin(302)
    session.begin(301)
    assert session.version == 302
    assert session.enabled == {"cap-notify"}
    assert not session.request(["-cap-notify"], OFFERED)
    assert session.enabled == {"cap-notify"}


def test_before_302_cap_notify_is_a_choice() -> None:
    session = Negotiation()
    session.begin()
    assert session.enabled == frozenset()
    assert session.request(["cap-notify"], OFFERED)
    assert session.request(["-cap-notify"], OFFERED)


def test_values_are_for_those_who_read_them() -> None:
    session = Negotiation()
    session.begin()
    assert session.offer(OFFERED) == ["cap-notify", "echo-message", "batch", "sasl"]
    session.begin(302)
    assert session.offer(OFFERED) == ["cap-notify", "echo-message", "batch", "sasl=PLAIN,EXTERNAL"]
    assert str(Capability("draft/x", "")) == "draft/x="


def test_what_is_withdrawn_is_off() -> None:
    session = Negotiation()
    session.request(["batch", "sasl"], OFFERED)
    session.withdraw(["sasl", "never-had"])
    assert session.enabled == {"batch"}


def test_equal_sets_are_one() -> None:
    """A thousand clients of a kind hold one set."""
    one, other = Negotiation(), Negotiation()
    one.request(["batch", "sasl"], OFFERED)
    other.request(["sasl"], OFFERED)
    other.request(["batch", "echo-message"], OFFERED)
    other.request(["-echo-message"], OFFERED)
    assert one.enabled is other.enabled
    other.withdraw(["batch", "sasl"])
    assert other.enabled is NOTHING


def test_a_set_that_nobody_holds_is_forgotten() -> None:
    session = Negotiation()
    session.request(["batch", "echo-message", "sasl"], OFFERED)
    held = ref(session.enabled)
    session.withdraw(["sasl"])
    gc.collect()
    assert held() is None


@given(st.lists(st.text("abc/-=é", min_size=1, max_size=20)), st.integers(1, 60))
def test_words_are_wrapped_and_none_is_lost(words: list[str], budget: int) -> None:
    wrapped = lines(words, budget)
    assert [word for line in wrapped for word in line.split(" ") if word] == words
    assert all(len(line.encode()) <= budget or " " not in line for line in wrapped)
    assert all(f"{line} {after.split(' ')[0]}".encode()[budget:] for line, after in pairwise(wrapped))


def test_no_words_are_one_empty_line() -> None:
    """CAP LIST is answered even when nothing is enabled."""
    assert lines([], 400) == [""]
