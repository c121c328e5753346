"""The registry of names."""

from pathlib import Path

import pytest

import culture
from culture.protocol import vocabulary
from culture.protocol.message import Message
from culture.protocol.names import valid_channel
from culture.protocol.vocabulary import VENDOR, Cap, ChannelMode, ClientTag, ControlWord, Exit, Tag, WellKnownChannel

SOURCE = Path(culture.__file__).parent
REGISTRY = Path(vocabulary.__file__)
PAGES = REGISTRY.parent / "extensions"


@pytest.mark.requirement("A06", "A33")
def test_nothing_else_spells_the_vendor() -> None:
    """Decision 41: one module knows the namespace; the pages of extensions show it to people"""
    spelled = [
        path.relative_to(SOURCE)
        for path in SOURCE.rglob("*")
        if path.is_file()
        and path.suffix != ".pyc"
        and path != REGISTRY
        and PAGES not in path.parents
        and VENDOR.rstrip("/") in path.read_text(encoding="utf-8", errors="replace")
    ]
    assert spelled == []


@pytest.mark.requirement("A33")
def test_what_is_ours_is_in_our_namespace() -> None:
    assert VENDOR == "agentirc.dev/"
    assert all(name.startswith(VENDOR) for name in (*Cap, *Tag, *vocabulary.UserKey, *vocabulary.ChannelKey))
    assert [name for name in ClientTag if not name.startswith(f"+{VENDOR}")] == ["+draft/reply"], "an IRCv3 draft"


def test_the_tags_can_be_sent() -> None:
    tags = {str(name): "x" for name in (*Tag, *ClientTag)}
    assert Message.parse(str(Message("TAGMSG", ("#a",), tags=tags))).tags == tags


def test_the_channels_are_channels() -> None:
    made = [vocabulary.project_channel("a"), vocabulary.standup_channel("a"), vocabulary.work_channel("7")]
    assert made == ["#project-a", "#standup-a", "#work-7"]
    assert all(valid_channel(name) for name in (*WellKnownChannel, *made))


def test_a_mode_is_one_letter() -> None:
    assert all(len(mode) == 1 for mode in ChannelMode)


def test_the_words_people_use_to_steer_an_agent() -> None:
    """Decision 12a"""
    said = "status, pause, resume, abort, go on, stand down, compact, clear, budget, help"
    assert ", ".join(ControlWord) == said


def test_the_exit_codes() -> None:
    assert [int(code) for code in Exit] == [0, 1, 2, 3, 4, 5, 6, 78]
