"""Names of new channels: refused characters, normal form, and names that people confuse."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.protocol.channel_names import fault_in, skeletons
from culture.protocol.names import fold, reserved, valid_channel


@pytest.mark.parametrize(
    "name", ["#general", "#General-1", "#a|b", "#café", "#чат", "#ψυχή", "#会議室", "#ö", "#\U0001f600", "##"]
)
def test_readable_name_has_no_fault(name: str) -> None:
    assert fault_in(name) is None


@pytest.mark.parametrize(
    ("name", "described"),
    [
        ("#gen\u200beral", "U+200B ZERO WIDTH SPACE"),
        ("#gen\u200deral", "U+200D ZERO WIDTH JOINER"),
        ("#gen\u202eeral", "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ("#gen\u00adrl", "U+00AD SOFT HYPHEN"),
        ("#a\u00a0b", "U+00A0 NO-BREAK SPACE"),
        ("#a\u3000b", "U+3000 IDEOGRAPHIC SPACE"),
        ("#a\u2028b", "U+2028 LINE SEPARATOR"),
        ("#a\u2029b", "U+2029 PARAGRAPH SEPARATOR"),
        ("#a\u2800b", "U+2800 BRAILLE PATTERN BLANK"),
        ("#a\u3164b", "U+3164 HANGUL FILLER"),
        ("#a\ufe0fb", "U+FE0F VARIATION SELECTOR-16"),
        ("#a\U000e0041b", "U+E0041 TAG LATIN CAPITAL LETTER A"),
        ("#a\ue000b", "U+E000"),
        ("#a\U000e0fffb", "U+E0FFF"),
        ("#a\u0378b", "U+0378"),
    ],
)
def test_unreadable_character_is_refused_and_described(name: str, described: str) -> None:
    fault = fault_in(name)
    assert fault is not None and f": {described} is in this one" in fault


def test_name_that_is_not_in_normal_form_c_is_refused() -> None:
    apart = unicodedata.normalize("NFD", "#café")
    assert "normal form C" in (fault_in(apart) or "")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("#general", "#gеneral"),  # Cyrillic е
        ("#general", "#ｇｅｎｅｒａｌ"),  # full width
        ("#general", "#generaI"),
        ("#general", "#genera1"),
        ("#root", "#r00t"),
        ("#ops", "#ορѕ"),
        ("#ops", "#օpꜱ"),  # Armenian օ, a small capital S
        ("#ops", "#ᴏps"),
        ("#hooks", "#հօօkѕ"),
        ("#ΝΕΑ", "#νεα"),
        ("#NEA", "#ΝΕΑ"),
        ("#AI", "#Al"),
        ("#Über", "#über"),
        ("#straße", "#strasse"),
        ("#tom", "#ТОМ"),
        ("#file", "#ﬁle"),
    ],
)
def test_confusable_names_share_a_skeleton(one: str, other: str) -> None:
    assert set(skeletons(one)) & set(skeletons(other))


@pytest.mark.parametrize(
    ("one", "other"), [("#cafe", "#café"), ("#a", "#b"), ("#team-1", "#team-2"), ("#тест", "#текст"), ("#ай", "#аи")]
)
def test_names_that_differ_to_the_eye_share_no_skeleton(one: str, other: str) -> None:
    assert not set(skeletons(one)) & set(skeletons(other))


@given(st.text(min_size=1, max_size=20))
def test_same_name_in_another_case_shares_a_skeleton(text: str) -> None:
    name = f"#{text}"
    assert set(skeletons(name)) & set(skeletons(fold(name)))


@given(st.text(st.characters(categories=("Zs", "Zl", "Zp", "Cf", "Co", "Cn", "Cc"), min_codepoint=128), min_size=1))
def test_name_of_unreadable_characters_is_never_allowed(text: str) -> None:
    assert not valid_channel(f"#{text}") or fault_in(f"#{text}") is not None


@pytest.mark.parametrize("name", ["supervisor", "system", "server", "irc"])
def test_name_of_a_part_of_the_system_is_reserved(name: str) -> None:
    assert reserved(name) and reserved(f"spark-{name}") and reserved(f"spark-{name.upper()}")


@pytest.mark.parametrize("name", ["culture", "team", "admin", "root"])
def test_name_of_an_agent_of_the_founding_documents_is_free(name: str) -> None:
    assert not reserved(f"spark-{name}")
