"""The pages of protocol/extensions: their form, and every line they show."""

import re
from pathlib import Path

import pytest

from culture.protocol import message, vocabulary
from culture.protocol.mentions import mentions
from culture.protocol.message import Message
from culture.protocol.stream import oversize

PAGES = sorted((Path(message.__file__).parent / "extensions").glob("*.md"))
HEADINGS = [
    "Extension:",
    "Status:",
    "Commands:",
    "Description:",
    "Messages:",
    "  Client → Server:",
    "  Server → Client:",
    "Errors:",
]
EXAMPLE = re.compile(r"^ {4}(\S.*)$", re.MULTILINE)


def examples(page: Path) -> tuple[list[Message], list[Message]]:
    """What clients send and what servers send, as the page shows it."""
    _, shown = page.read_text(encoding="utf-8").split("\nMessages:\n")
    sent, answered = shown.split("\n  Server → Client:\n")
    return [Message.parse(line) for line in EXAMPLE.findall(sent)], [
        Message.parse(line) for line in EXAMPLE.findall(answered)
    ]


def page_called(name: str) -> Path:
    [page] = [page for page in PAGES if page.stem == name]
    return page


@pytest.mark.requirement("A20")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_the_headings_literally_and_in_order(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    found = [next((h for h in HEADINGS if line == h or line.startswith(h + " ")), None) for line in lines]
    assert [heading for heading in found if heading] == HEADINGS
    assert found[:3] == HEADINGS[:3]
    assert all(line.split(":", 1)[1].strip() for line in lines[:3])


@pytest.mark.requirement("A20")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_line_shown_is_a_line(page: Path) -> None:
    """Each survives parsing and writing, fits, and comes from where the page says."""
    sent, answered = examples(page)
    assert sent
    assert answered
    for shown in (*sent, *answered):
        assert Message.parse(str(shown)) == shown
        assert oversize(str(shown).encode()) is None
    # Between servers a line may come from either, or from a user.
    assert not any(shown.source for shown in sent) or "between servers only" in page.read_text(encoding="utf-8")
    assert all(shown.source for shown in answered)


def test_the_pages_spell_our_names_as_the_registry_does() -> None:
    kinds = (vocabulary.Cap, vocabulary.Tag, vocabulary.ClientTag, vocabulary.UserKey, vocabulary.ChannelKey)
    known = {*vocabulary.BatchType, *(name for kind in kinds for name in kind)}
    spelled = {
        name for page in PAGES for name in re.findall(r"\+?agentirc\.dev/[a-z-]+", page.read_text(encoding="utf-8"))
    }
    assert spelled <= known


def test_the_page_on_mentions_is_right_about_whom_its_message_calls() -> None:
    _, answered = examples(page_called("mentions"))
    [tagged] = [shown for shown in answered if vocabulary.Tag.MENTIONS in shown.tags]
    members = ["spark-ori", "spark-claude", "thor-ada", "spark-bob"]
    assert ",".join(mentions(tagged.params[1], members)) == tagged.tags[vocabulary.Tag.MENTIONS]


def test_the_page_on_classes_knows_the_classes() -> None:
    _, answered = examples(page_called("class"))
    classes = {shown.tags[vocabulary.Tag.CLASS] for shown in answered if shown.tags}
    assert classes <= set(vocabulary.UserClass)
    assert classes
