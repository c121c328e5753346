"""What a page may be called."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.wiki import names
from culture.wiki.errors import WikiRefused
from culture.wiki.pages import Pages


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/",
        "/etc/passwd",
        "plans/",
        "a//b",
        "..",
        "../x",
        "plans/../../x",
        "./x",
        ".git/config",
        "plans/.GIT/x",
        ".hidden",
        "a.",
        "-rf",
        "a b",
        "a\\b",
        "a:b",
        "a\nb",
        "a\0b",
        "a\u200db",
        "GIT~1",
        "a.md/b",
        "a.MD",
        "a.md.md",
        "\u0301a",
        "home\ufe0f",
        "home\U000e0100",
        "home\u3164",
        "ho\u034fme",
        "home\u180b",
        "\ud800",
        "*",
        ":(glob)x",
        "x" * 201,
        "/".join("abcdefghi"),
    ],
    ids=lambda name: ascii(name)[:24],
)
def test_a_name_that_could_be_anything_else_is_refused(name: str) -> None:
    with pytest.raises(WikiRefused):
        names.page_name(name)


@pytest.mark.parametrize("name", ["home", "plans/e2-cdn", "decisions/2026.03_größe", "日本語/メモ", "हिन्दी", "x" * 200])
def test_a_name_of_any_script_is_fine(wiki: Pages, name: str) -> None:
    revision = wiki.read("home").revision if name == "home" else ""
    wiki.write(name, "text\n", revision, "spark-ramona")
    assert wiki.read(f"{name}.md").text == "text\n"


def test_every_way_in_asks_for_a_name(wiki: Pages) -> None:
    for ask in (wiki.read, wiki.history):
        with pytest.raises(WikiRefused):
            ask("../x")
    with pytest.raises(WikiRefused):
        wiki.write("../x", "text\n", "", "spark-ramona")


@pytest.mark.parametrize("name", ["Plans/E2", "PLANS/e2", "plans/e2.md"])
def test_no_two_pages_differ_by_case_alone(wiki: Pages, name: str) -> None:
    revision = wiki.write("plans/e2", "one\n", "", "spark-ramona").revision
    assert wiki.read(name).name == "plans/e2"
    assert wiki.write(name, "two\n", revision, "spark-ramona").name == "plans/e2"


def test_a_folder_keeps_its_spelling(wiki: Pages) -> None:
    wiki.write("Plans/Big/one", "one\n", "", "spark-ramona")
    assert wiki.write("plans/BIG/Two", "two\n", "", "spark-ramona").name == "Plans/Big/Two"
    assert wiki.write("PLANS/small/three", "three\n", "", "spark-ramona").name == "Plans/small/three"


def test_letters_that_are_written_in_two_ways_are_one(wiki: Pages) -> None:
    wiki.write(unicodedata.normalize("NFD", "größe"), "text\n", "", "spark-ramona")
    assert wiki.read(unicodedata.normalize("NFC", "größe")).text == "text\n"


@given(st.text(max_size=40))
def test_a_name_that_is_taken_leads_to_one_file_inside(said: str) -> None:
    try:
        name = names.page_name(said)
    except WikiRefused:
        return
    path = names.path_of(name)
    assert names.page_of(path) == name and names.page_name(name) == name
    assert not path.startswith(("/", ".", "-")) and ".." not in path.split("/") and "\\" not in path
    assert ".git" not in path.casefold().split("/") and path.isprintable()
