"""Who may do what: each cell of the table in docs/server/security.md, held to running servers.

All senders are played once against one set of servers; each test looks at one thing that came of it.
"""

import os
import re
from pathlib import Path

import pytest

from culture.config import peer_uid
from tests.authority.play import COLUMNS, YES, Results, play

PAGE = Path(__file__).resolve().parents[2] / "docs" / "server" / "security.md"
EXPECTED = {
    # in the order of COLUMNS
    "a person, logged in": "yes yes yes yes yes yes no yes true",
    "a person, by local user id": "yes yes no yes yes yes no yes unknown",
    "an agent": "yes no yes no no no yes yes false",
    "the EM of the team, an agent": "yes no yes no no yes yes yes false",
    "a bot": "held no no no no no no yes false",
    "who registered an account": "held no no no no no no yes false",
    "who has no account": "held no no no no no no no false",
    "who has no account and says `+B`": "held no no no no no no no false",
    "a process of an agent": "held no no no no no no no false",
    "another user, in `local_users`": "held no no no no no no no false",
    "another user": "refused refused refused refused refused refused refused refused refused",
    "another user, logged in": "yes yes yes yes yes yes no yes true",
    "WebSocket: a person, logged in": "yes yes yes yes yes yes no yes true",
    "WebSocket: an agent": "yes no yes no no no yes yes false",
    "WebSocket: a bot": "held no no no no no no yes false",
    "WebSocket: without a login": "refused refused refused refused refused refused refused refused refused",
    "the web page: a person": "yes yes yes yes yes yes – yes true",
    "the bridge: token for an agent": "yes no yes no no no – – false",
    "the bridge: token for a nick without an account": "held no no no no no – – false",
    "the bridge: token for a person": "refused refused refused refused refused refused refused refused refused",
    "link `full`: a person": "yes yes yes yes yes yes no yes true",
    "link `full`: a person, by local user id": "yes yes no yes yes yes no yes unknown",
    "link `full`: an agent": "yes no yes no no no yes yes false",
    "link `full`: a bot": "held no no no no no no yes false",
    "link `full`: who registered an account": "held no no no no no no yes false",
    "link `full`: who has no account": "held no no no no no no no false",
    "link `no_authority`: a person": "held no no no no no no no false",
    "link `no_authority`: a person, by local user id": "held no no no no no no no false",
    "link `no_authority`: an agent": "held no no no no no no no false",
    "link `no_authority`: a bot": "held no no no no no no no false",
    "link `no_authority`: who registered an account": "held no no no no no no no false",
    "link `no_authority`: who has no account": "held no no no no no no no false",
    "link `restricted`: a person": "held no no no no no no no false",
    "link `restricted`: a person, by local user id": "held no no no no no no no false",
    "link `restricted`: an agent": "held no no no no no no no false",
    "link `restricted`: a bot": "held no no no no no no no false",
    "link `restricted`: who registered an account": "held no no no no no no no false",
    "link `restricted`: who has no account": "held no no no no no no no false",
}
CELLS = {
    (name, column): cell
    for name, cells in EXPECTED.items()
    for column, cell in zip(COLUMNS, cells.split(), strict=True)
}
pytestmark = [
    pytest.mark.skipif(not peer_uid.IS_KNOWN, reason="nobody can tell here whose a connection is"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What each sender achieved."""
    return play(tmp_path_factory.mktemp("authority"))


@pytest.mark.parametrize(("name", "column"), CELLS)
def test_each_cell_of_the_table_is_what_running_servers_do(name: str, column: str, results: Results) -> None:
    if name.startswith("another user") and os.getuid() != 0:
        pytest.skip("only root can become another user")
    assert results.cells[name, column] == CELLS[name, column]


def test_every_sender_that_was_played_has_its_row(results: Results) -> None:
    assert set(results.cells) <= set(CELLS)


def test_no_prompt_has_a_message_of_a_sender_whose_messages_are_held(results: Results) -> None:
    woke = {nick: CELLS[name, "wakes"] == YES for name, nick in results.nicks.items()}
    assert {nick: nick in results.prompts for nick in woke} == woke


def test_the_table_of_the_page_is_this_table() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("| Sender |"))
    rows = [re.split(r"\s*\|\s*", line.strip("| ")) for line in lines[begin + 2 : begin + 2 + len(EXPECTED)]]
    assert {name: " ".join(cells) for name, *cells in rows} == EXPECTED
    assert not lines[begin + 2 + len(EXPECTED)].startswith("|")
