"""What every store finds: messages that have all the words, whatever text is asked for."""

import pytest

from culture.skills.history.store import LATEST, Store, TooSlow, View
from culture.skills.history.words import query
from tests.skills.history.entries import PLACE, SECOND, START, ask, entry, event, numbers, private


def found(store: Store, text: str, view: View | str = PLACE, limit: int = 100) -> list[int]:
    view = View(view) if isinstance(view, str) else view
    return numbers(store.search(view, query(text), limit, 5.0))


@pytest.mark.requirement("D08")
def test_all_words_must_be_there_in_any_order_and_case(store: Store) -> None:
    store.write([entry(1, "the quick brown fox"), entry(2, "Brown bears"), entry(3, "quick! BROWN?"), entry(4, "fox")])
    assert found(store, "brown") == [1, 2, 3]
    assert found(store, "Brown quick") == [1, 3]
    assert found(store, "brown quick fox bears") == []
    assert found(store, "rown") == []
    assert found(store, "bro") == []


def test_the_newest_are_found_and_the_oldest_of_them_come_first(store: Store) -> None:
    store.write([entry(seq, "same word") for seq in range(50)])
    assert found(store, "word", limit=3) == [47, 48, 49]
    assert found(store, "word same", limit=100) == [*range(50)]


def test_only_messages_of_the_place_are_found(store: Store) -> None:
    store.write([entry(1, "word", place="#a"), entry(2, "word", place="#b"), event(3, "TOPIC", place="#a")])
    store.write([entry(4, "word", verb="TOPIC", place="#a"), private(5, "word", ("ada", "ada"), ("ben", "ben"))])
    assert found(store, "word", "#a") == [1]
    assert found(store, "word", "#nowhere") == []
    assert found(store, "word", "a:ada a:ben") == [5]


def test_only_what_may_be_seen_is_found(store: Store) -> None:
    store.write([entry(1, "word"), entry(2, "word", closed=True), entry(3, "word", status="@"), entry(4, "word")])
    assert found(store, "word") == [1, 4]
    assert found(store, "word", limit=2) == [1, 4]
    assert found(store, "word", View(PLACE, closed_since=0)) == [1, 2, 4]
    assert found(store, "word", View(PLACE, ranks=("", "@"))) == [1, 3, 4]
    assert found(store, "word", View(PLACE, since=START + 4 * SECOND)) == [4]
    assert found(store, "word", View(PLACE, since=LATEST * 9)) == []
    assert found(store, "word", View(PLACE, events=True)) == [1, 4]


def test_late_ones_and_those_written_again_are_found_once(store: Store) -> None:
    store.write([entry(5, "word"), entry(6, "word")])
    store.write([entry(5, "word"), entry(2, "word"), entry(7, "word"), entry(2, "word")])
    assert found(store, "word") == [2, 5, 6, 7]


TEXTS = {
    1: "I write C++ and C# all day",
    2: "it's here",
    3: "spark-harper: wake up",
    4: 'he said "hello there" AND left',
    5: "日本語を話しますか",
    6: "Café déjà vu, naïve Ångström",
    7: "😀 done 👍🏽",
    8: "\x02bold\x02 \x0304,01red\x03 w\x1ford \x1ditalic\x0f",
    9: "see https://example.org/a_b?c=d#e",
    10: "100% of $5.00",
    11: "100 percent of 5 dollars",
    12: "__init__.py has snake_case",
    13: "Straße und STRASSE",
    14: "สวัสดีครับ",
    15: "Ｆｕｌｌ ｗｉｄｔｈ ｶﾀｶﾅ",
    16: "한국어 텍스트",
    17: "NOT NEAR(a b) OR *",
    18: "C plus and sharp",
    19: "\x01ACTION waves\x01",
    20: "naïve\u0301 e\u0301toile",
    21: "ʼn ﬁne ½ ²",
    22: "first line\nsecond line",
    23: "Ελλάδα ΟΔΥΣΣΕΥΣ",
}
ASKED = [
    ("c++", [1]),
    ("C#", [1]),
    ("C", [1, 9, 18]),
    ("it's", [2]),
    ("IT", [2]),
    ("its", []),
    ("spark-harper", [3]),
    ("harper-spark", []),
    ("harper: spark", [3]),
    ("harper spark", [3]),
    ('"hello there"', [4]),
    ('"hello', [4]),
    ('there" and', [4]),
    ("日", [5]),
    ("本語", [5]),
    ("話します", [5]),
    ("しま 日本", [5]),
    ("日語", []),
    ("か", [5]),
    ("cafe", [6]),
    ("CAFÉ", [6]),
    ("deja VU", [6]),
    ("angstrom", [6]),
    ("ÅNGSTRÖM", [6]),
    ("😀", [7]),
    ("👍", [7]),
    ("👍🏽", [7]),
    ("😀 done", [7]),
    ("😁", []),
    ("bold red word", [8]),
    ("\x02bold", [8]),
    ("04", []),
    ("italic", [8]),
    ("https://example.org/a_b?c=d#e", [9]),
    ("example.org", [9]),
    ("100%", [10]),
    ("100", [10, 11]),
    ("$5.00", [10]),
    ("%", [10]),
    ("snake_case", [12]),
    ("snake", [12]),
    ("__init__.py", [12]),
    ("_", [9, 12]),
    ("strasse", [13]),
    ("STRAẞE", [13]),
    ("ดี", [14]),
    ("ครับ", [14]),
    ("full width", [15]),
    ("カタカナ", [15]),
    ("한국어", [16]),
    ("NEAR", [17]),
    ("*", [17]),
    ("not OR near", [17]),
    ("NEAR(a", [17]),
    ("action waves", [19]),
    ("naive", [6, 20]),
    ("étoile", [20]),
    ("fine", [21]),
    ("1⁄2", [21]),
    ("line second", [22]),
    ("οδυσσευς", [23]),
    ("οδυσσευσ", [23]),
    ("ελλαδα", [23]),
]


@pytest.mark.requirement("D08")
@pytest.mark.parametrize(("text", "expected"), ASKED, ids=[text for text, _ in ASKED])
def test_any_text_may_be_asked_for(store: Store, text: str, expected: list[int]) -> None:
    store.write([entry(seq, text) for seq, text in TEXTS.items()])
    assert found(store, text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\x02",
        "'",
        '"',
        "''",
        '""',
        "(",
        ")",
        "AND",
        "OR NOT",
        "a AND",
        "^a",
        "-a",
        "a:b",
        "{a b}:c",
        "%_",
        "\\",
    ],
)
def test_what_a_database_may_take_for_its_own_is_only_text(store: Store, text: str) -> None:
    store.write([entry(1, "nothing of it"), entry(2, f"x {text} y")])
    assert found(store, text) == ([2] if text.strip(" \x02") else [])


def test_half_a_character_is_found_nowhere(store: Store) -> None:
    store.write([entry(1, "x y")])
    assert found(store, "x \ud800") == []
    assert found(store, "\udcff") == []


def test_a_long_question(store: Store) -> None:
    words = [f"w{number}" for number in range(200)]
    store.write([entry(1, " ".join(words)), entry(2, "w1")])
    assert found(store, " ".join(words)) == [1]
    assert found(store, "w1 " * 5_000) == [1, 2]
    assert found(store, "x" * 10_000) == []
    store.write([entry(3, "x" * 10_000), entry(4, "x" * 10_000 + "!")])
    assert found(store, "x" * 10_000) == [3, 4]
    assert found(store, "x" * 10_000 + "!") == [4]


@pytest.mark.fault("B19")
@pytest.mark.parametrize("text", ["+", "common", "common +", "の", "++ -- //"])
def test_a_search_that_takes_too_long_is_given_up(store: Store, text: str) -> None:
    text_of_all = "common の + never what is asked for"
    for start in range(0, 10_000, 1_000):
        batch = [entry(seq, f"{text_of_all} {seq}", closed=True) for seq in range(start, start + 1_000)]
        store.write(batch)
    with pytest.raises(TooSlow):
        store.search(View(PLACE), query(text), 10, 0.0)
    assert len(ask(store, View(PLACE, closed_since=0), limit=10)) == 10
    assert found(store, "never 77", View(PLACE, closed_since=0)) == [77]
