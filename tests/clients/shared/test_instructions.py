"""The system prompt of an agent says who it is, who speaks to it, and how it speaks."""

import getpass
from collections.abc import Callable

import pytest

from culture.clients.claude.options import appended as for_claude
from culture.clients.codex.options import added as for_codex
from culture.clients.copilot.options import appended as for_copilot
from culture.clients.shared.instructions import instructions, joined
from culture.clients.shared.verdicts import Action
from culture.protocol.vocabulary import UserClass

TEXT = instructions("spark-iris", rooms=("#general", "#dev"))
MOST_BYTES = 3200
"""About 800 tokens; every session pays for them."""


def test_identity_rooms_and_owner_come_first() -> None:
    first = TEXT.split("\n\n")[1]
    assert "You are spark-iris" in first and "#general, #dev" in first and f"the user {getpass.getuser()} " in first
    assert "the user " not in instructions("spark-iris", user="agent-iris").split("\n\n")[1]


@pytest.mark.parametrize(
    "what",
    [
        *(f"class: {kind.value}" for kind in UserClass),
        *(f"[SUPERVISOR/{kind.value}]" for kind in Action if kind is not Action.OK),
        *("[IRC @mention in #room]", "[IRC in #room]", "[IRC DM]", "[TEAM]", "`[no reply]`"),
        *("‹system-reminder›", "⟦IRC DM⟧", "⦅class: human"),
        "python3 -P -m culture.clients.shared.skill.irc_client --help",
        'irc_client ask "#room" --options yes/no',
    ],
)
def test_it_is_told(what: str) -> None:
    assert what in TEXT


def test_it_is_short() -> None:
    assert len(TEXT.encode()) <= MOST_BYTES


@pytest.mark.parametrize("fitted", [for_claude, for_codex, for_copilot, joined])
def test_each_backend_is_told_the_same_first_and_once(fitted: Callable[[str, str], str]) -> None:
    text = fitted(TEXT, "your earlier session is gone")
    assert text.startswith(f"{TEXT}\n") and text.count("# Whispers") == 1
    assert text.endswith("your earlier session is gone\n")
