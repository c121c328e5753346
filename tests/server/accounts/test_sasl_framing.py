"""AUTHENTICATE's pieces of base64 (IRCv3 sasl-3.1, "The AUTHENTICATE Command")."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.server.auth.sasl_framing import LONGEST_MESSAGE, PIECE, SaslInbox, Unframed, pieces


@given(st.binary(max_size=LONGEST_MESSAGE * 3 // 4))
def test_a_message_arrives_as_it_was_sent(message: bytes) -> None:
    inbox = SaslInbox()
    *before, last = pieces(message)
    assert all(inbox.feed(piece) is None for piece in before)
    assert inbox.feed(last) == message
    assert inbox.feed("+") == b""


@pytest.mark.parametrize(("size", "lines"), [(0, 1), (1, 1), (297, 1), (298, 2), (300, 2), (301, 2), (600, 3)])
def test_a_whole_piece_is_followed_by_another(size: int, lines: int) -> None:
    sent = pieces(b"x" * size)
    assert len(sent) == lines and len(sent[-1]) < PIECE


@given(st.lists(st.text(max_size=PIECE + 2)))
def test_garbage_is_only_ever_unframed(sent: list[str]) -> None:
    inbox = SaslInbox()
    for piece in sent:
        assert isinstance(inbox.feed(piece), bytes | Unframed | None)


def test_a_message_has_an_end() -> None:
    inbox = SaslInbox()
    answers = [inbox.feed("A" * PIECE) for _ in range(11)]
    assert answers == [None] * 10 + [Unframed.TOO_MUCH]
    assert inbox.feed("A" * (PIECE + 1)) is Unframed.TOO_LONG
    assert inbox.feed(base64.b64encode(b"again").decode()) == b"again"
    for garbled in ("!!!!", "AAA", "AA=A", "é", ""):
        assert inbox.feed(garbled) in (Unframed.GARBLED, b"")
