"""A channel's name as the name of a folder: any name is one, no two channels share one, each can be read back."""

from pathlib import Path, PurePosixPath
from unicodedata import normalize
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.protocol.names import fold, valid_channel
from culture.skills.logger.files import file_of, folder_of

_LETTERS = st.one_of(
    st.characters(exclude_categories=["Cs"]),
    st.sampled_from("./\\~%-:AaZzÄäßſéＡ日本가\u0301\u1100\u1161#*?\"'$`;&|<>()[]{}"),
)
names = st.text(_LETTERS, min_size=1, max_size=80).map(lambda text: f"#{text}")
channels = names.filter(lambda name: valid_channel(name, 64))
long_channels = st.text("aé/", min_size=300, max_size=480).map(lambda text: f"#{text}")


@pytest.mark.parametrize(
    ("channel", "folder"),
    [
        ("#general", "general"),
        ("#General", "general"),
        ("#llama-cpp_2.0+x", "llama-cpp_2.0+x"),
        ("##general", "%23general"),
        ("#a/b", "a%2Fb"),
        ("#..", "%2E."),
        ("#../../etc", "%2E.%2F..%2Fetc"),
        ("#.git", "%2Egit"),
        ("#git~1", "git%7E1"),
        ("#-rf", "%2Drf"),
        ("#100%", "100%25"),
        ("#日本", "日本"),
        ("#café", "caf%C3%A9"),
    ],
)
def test_names_as_they_are_seen(channel: str, folder: str) -> None:
    assert folder_of(channel) == folder


@pytest.mark.requirement("D11")
@given(channels)
def test_a_folder_is_read_back_as_its_channel(channel: str) -> None:
    assert "#" + unquote(folder_of(channel)) == fold(channel)


@given(st.one_of(channels, names, long_channels))
def test_a_folder_is_one_harmless_component(channel: str) -> None:
    folder = folder_of(channel)
    assert PurePosixPath(folder).parts == (folder,)
    assert folder[0] not in ".-~"
    assert len(folder.encode()) <= 255
    assert not set(folder) & set("/\\\0\n\t :*?\"'<>|$`;&")
    assert file_of(Path("/logs"), channel, "2026-11-16") == Path("/logs") / folder / "2026-11-16.log"


@given(st.one_of(channels, long_channels), st.one_of(channels, long_channels))
def test_two_channels_never_share_a_folder(one: str, other: str) -> None:
    assert (folder_of(one) == folder_of(other)) == (fold(one) == fold(other))


@given(names, names)
def test_not_even_where_the_file_system_folds_or_normalises(one: str, other: str) -> None:
    def seen(channel: str) -> str:
        return normalize("NFKD", folder_of(channel).casefold())

    assert (seen(one) == seen(other)) == (fold(one) == fold(other))


@pytest.mark.parametrize(("one", "other"), [("#Ä", "#ä"), ("#é", "#e\u0301"), ("#ß", "#ss"), ("#가", "#\u1100\u1161")])
def test_what_looks_the_same_to_a_file_system_is_told_apart(one: str, other: str) -> None:
    assert normalize("NFKD", folder_of(one).casefold()) != normalize("NFKD", folder_of(other).casefold())


def test_long_names_with_the_same_beginning_are_told_apart() -> None:
    assert folder_of("#" + "é" * 200 + "a") != folder_of("#" + "é" * 200 + "b")
