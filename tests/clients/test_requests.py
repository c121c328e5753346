"""The table of requests: names and fields to the letter, and a clear word on everything else."""

import asyncio
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.clients.shared import requests
from culture.clients.shared.desk import RequestFailed
from culture.clients.shared.ipc import (
    LONGEST_LINE,
    MARGIN,
    WORK_LIMIT,
    BadLine,
    Lines,
    Request,
    Response,
    Whisper,
    decode_answer,
    decode_request,
    encode,
)
from culture.clients.shared.requests import VERBS, answer, is_agents_own
from culture.clients.shared.skill.call import PATIENCE, patience_for
from tests.clients.desks import NotedDesk, answered, message

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clients" / "ipc.md"

FIELDS = {
    "irc_send": ["channel", "message"],
    "irc_read": ["channel", "limit"],
    "irc_ask": ["channel", "question", "timeout"],
    "irc_join": ["channel"],
    "irc_part": ["channel"],
    "irc_channels": [],
    "irc_who": ["channel"],
    "compact": [],
    "clear": [],
    "set_directory": ["path"],
    "status": [],
    "pause": ["soon"],
    "resume": ["reason"],
    "shutdown": [],
}


@pytest.fixture
def desk() -> NotedDesk:
    return NotedDesk()


async def ask(desk: NotedDesk, type: str, **fields: object) -> object:
    return await answer(desk, Request(type, "1", fields))


@pytest.mark.requirement("H31")
def test_types_and_fields_are_the_founding_ones() -> None:
    # What was added later stands behind them, and may be left out.
    founding = {type: list(VERBS[type].fields)[: len(names)] for type, names in FIELDS.items()}
    assert founding == FIELDS
    added = {type: list(VERBS[type].fields)[len(names) :] for type, names in FIELDS.items()}
    assert {type: names for type, names in added.items() if names} == {"irc_ask": ["options", "again", "reply"]}


@pytest.mark.parametrize(
    ("type", "fields", "done", "data"),
    [
        ("irc_send", {"channel": "#general", "message": "hello"}, ("send", "#general", "hello"), None),
        ("irc_send", {"channel": "spark-ori", "message": "a\n  b"}, ("send", "spark-ori", "a\n  b"), None),
        (
            "irc_read",
            {"channel": "#general"},
            ("read", "#general", 50),
            {"messages": [], "remaining": 0, "withheld": 0},
        ),
        ("irc_read", {"channel": "#general", "limit": 7}, ("read", "#general", 7), None),
        ("irc_read", {"channel": "#general", "limit": 10**9}, ("read", "#general", 500), None),
        (
            "irc_search",
            {"channel": "#general", "text": "cmake", "meaning": True},
            ("search", "#general", "cmake", True, 50),
            None,
        ),
        (
            "irc_ask",
            {"channel": "#general", "question": "may I?", "timeout": 5},
            ("ask", "#general", "may I?", 5.0),
            answered("yes, go ahead"),
        ),
        ("irc_ask", {"channel": "#general", "question": "may I?"}, ("ask", "#general", "may I?", None), None),
        ("irc_join", {"channel": "#new"}, ("join", "#new"), {"channel": "#new"}),
        ("irc_part", {"channel": "#new"}, ("part", "#new"), {"channel": "#new"}),
        ("irc_who", {"channel": "#general"}, ("who", "#general"), None),
        ("irc_who", {"target": "spark-ori"}, ("who", "spark-ori"), None),
        ("spawn_agent", {"role": "fixer", "text": "mend"}, ("spawn", "fixer", "mend", None), None),
        ("compact", {}, ("compact",), {}),
        ("prompt", {"text": "look", "key": "k"}, ("prompt", "k", "look", None, False, None), None),
        (
            "prompt",
            {"key": "k", "wait": True, "place": "#work", "timeout": 5},
            ("prompt", "k", None, "#work", True, 5.0),
            None,
        ),
        ("clear", {}, ("clear",), {}),
        ("pause", {}, ("pause",), {}),
        ("pause", {"soon": True}, ("pause", True), {}),
        ("resume", {}, ("resume",), {}),
        ("resume", {"reason": "it is free"}, ("resume", "it is free"), {}),
        ("shutdown", {}, ("shutdown",), {}),
    ],
)
async def test_a_request_is_done_at_the_desk(
    desk: NotedDesk, type: str, fields: dict[str, object], done: tuple[object, ...], data: object
) -> None:
    got = await ask(desk, type, **fields)
    assert desk.done == [done]
    assert data is None or got == data


@pytest.mark.requirement("H10", "H11")
async def test_channels_come_with_counts_and_members_with_modes(desk: NotedDesk) -> None:
    assert await ask(desk, "irc_channels") == [
        {"channel": "#general", "members": 5},
        {"channel": "#quiet", "members": 1},
    ]
    rows = await ask(desk, "irc_who", channel="#general")
    assert isinstance(rows, list)
    assert [(row["nick"], row["modes"]) for row in rows] == [("spark-ori", "o"), ("spark-culture", "")]


@pytest.mark.fault("E19")
async def test_a_look_at_the_status_says_nothing_anywhere(desk: NotedDesk) -> None:
    assert await ask(desk, "status") == await desk.status()
    assert desk.done == []


@pytest.mark.fault("E14")
@pytest.mark.parametrize(
    ("type", "fields", "error"),
    [
        ("irc_sned", {}, "'irc_sned' is no request; did you mean irc_send?"),
        ("__init__", {}, "is no request"),
        ("xyzzy", {}, "there are irc_send, irc_read"),
        ("irc_send", {"channel": "#general"}, "irc_send: message is missing"),
        ("irc_send", {"channel": "#general", "message": None}, "irc_send: message is missing"),
        ("irc_send", {"channel": "#general", "message": "  "}, "message must be a text that is not empty"),
        ("irc_send", {"channel": "#general", "message": ["hello"]}, "message must be a text"),
        ("irc_send", {"channel": "#general", "message": "\ud800"}, "message must be valid Unicode"),
        ("irc_send", {"channel": "#a,#b", "message": "x"}, "channel must be the name of one channel"),
        ("irc_send", {"channel": "#a\r\nQUIT", "message": "x"}, "channel must be the name of one channel"),
        ("irc_send", {"channel": "#" * 300, "message": "x"}, "channel must be the name of one channel"),
        (
            "irc_send",
            {"channel": "#general", "message": "x", "text": "y"},
            "'text' is no field of it; it takes channel",
        ),
        ("irc_join", {"channel": "general"}, "which begins with #: perhaps #general"),
        ("irc_read", {"channel": "#general", "limit": 0}, "limit must be a number of messages"),
        ("irc_read", {"channel": "#general", "limit": True}, "limit must be a number of messages"),
        ("irc_read", {"channel": "#general", "limit": "5"}, "limit must be a number of messages"),
        ("irc_ask", {"channel": "#general", "question": "?", "timeout": float("nan")}, "timeout must be a number"),
        ("irc_ask", {"channel": "#general", "question": "?", "timeout": -1}, "timeout must be a number"),
        ("irc_ask", {"channel": "#general", "question": "?", "timeout": 10**400}, "timeout must be a number"),
        ("irc_who", {"channel": "#general", "target": "#general"}, "channel and target are the same field"),
        ("set_directory", {"path": "../other"}, "path must be a path that begins with / or ~"),
        ("set_directory", {"path": "/no/such/folder"}, "/no/such/folder is no folder"),
        ("prompt", {"text": "look"}, "prompt: key is missing"),
        ("prompt", {"text": "look", "key": "a b"}, "key must be a word of at most 200 letters"),
        ("prompt", {"text": "look", "key": "k", "place": "spark-ori"}, "place must be the name of a channel"),
        ("prompt", {"text": "look", "key": "k", "wait": "yes"}, "wait must be true or false"),
        ("pause", {"now": True}, "it takes soon"),
        ("resume", {"now": True}, "it takes reason"),
    ],
)
async def test_what_cannot_be_done_is_said(desk: NotedDesk, type: str, fields: dict[str, object], error: str) -> None:
    with pytest.raises(RequestFailed, match=re.escape(error)):
        await ask(desk, type, **fields)
    assert desk.done == []


@pytest.mark.requirement("H30")
async def test_the_daemon_too_reads_a_folder_s_instructions(desk: NotedDesk, tmp_path: Path) -> None:
    nothing = await ask(desk, "set_directory", path=str(tmp_path))
    assert nothing == {"path": str(tmp_path), "file": None, "text": None}
    (tmp_path / "AGENTS.md").write_text("Run make.")
    (tmp_path / "CLAUDE.md").write_text("Be brief.")
    assert await ask(desk, "set_directory", path=str(tmp_path)) == {
        "path": str(tmp_path),
        "file": "CLAUDE.md",
        "text": "Be brief.",
    }


def test_whispers_come_with_the_agent_s_own_calls_alone() -> None:
    watching = {"activity", "prompt", "questions", "status", "usage", "pause", "resume", "shutdown"}
    assert {type for type in VERBS if not is_agents_own(type)} == watching
    assert not is_agents_own("no such thing")


@pytest.mark.fault("E17")
async def test_the_daemon_gives_up_before_its_client_does(desk: NotedDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "WORK_LIMIT", 0.01)

    async def forever() -> list[object]:
        await asyncio.Event().wait()
        return []

    monkeypatch.setattr(desk, "channels", forever)
    with pytest.raises(RequestFailed, match="irc_channels: not done within"):
        await ask(desk, "irc_channels")


@pytest.mark.fault("E17")
@given(st.floats(min_value=0.001, max_value=7 * 24 * 3600))
def test_a_client_waits_longer_than_the_daemon_works(timeout: float) -> None:
    limit = requests.time_limit({"timeout": timeout})
    patience = patience_for(timeout)
    assert limit is not None and patience is not None
    assert timeout < limit < patience
    assert WORK_LIMIT < PATIENCE
    assert MARGIN > 0
    # Where only the daemon knows how long a question waits, neither sets a limit.
    assert requests.time_limit({"timeout": None}) is patience_for(None) is None


# Lines


@pytest.mark.requirement("H03", "H04", "H05")
@pytest.mark.parametrize(
    ("message", "line"),
    [
        (
            Request("irc_send", "abc123", {"channel": "#general", "message": "hello world"}),
            '{"type": "irc_send", "id": "abc123", "channel": "#general", "message": "hello world"}',
        ),
        (Response("uuid-here", True, {}), '{"type": "response", "id": "uuid-here", "ok": true, "data": {}}'),
        (
            Whisper("CORRECTION", "Try a different approach"),
            '{"type": "whisper", "whisper_type": "CORRECTION", "message": "Try a different approach"}',
        ),
    ],
)
def test_lines_are_the_founding_ones(message: Request | Response | Whisper, line: str) -> None:
    assert encode(message).decode() == line + "\n"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=10,
)
texts = st.text(st.characters(exclude_categories=["Cs"]))
names = texts.filter(lambda name: name not in ("type", "id"))


@given(texts, st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.dictionaries(names, json_values))
def test_a_request_comes_back_as_it_was(type: str, id: str, fields: dict[str, object]) -> None:
    line = encode(Request(type, id, fields))
    assert line.count(b"\n") == 1
    assert decode_request(line) == Request(type, id, fields)


@given(st.none() | texts, json_values, texts, st.booleans())
def test_an_answer_comes_back_as_it_was(id: str | None, data: object, error: str, ok: bool) -> None:
    response = Response(id, True, data) if ok else Response(id, False, error=error)
    assert decode_answer(encode(response)) == response
    assert decode_answer(encode(Whisper(error, error))) == Whisper(error, error)


@given(st.binary())
def test_any_bytes_are_a_request_or_a_bad_line(line: bytes) -> None:
    try:
        request = decode_request(line)
    except BadLine as bad:
        assert str(bad)
    else:
        assert request.id


def test_a_lone_surrogate_does_not_break_the_line() -> None:
    assert decode_answer(encode(Response("1", True, "a\ud800b"))) == Response("1", True, "a?b")


@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=10), st.data())
def test_lines_are_the_same_in_any_chunks(lines: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    cutter, found = Lines(20), []
    while whole:
        size = data.draw(st.integers(1, len(whole)))
        found += cutter.feed(whole[:size])
        whole = whole[size:]
    assert found == [line if len(line) < 20 else None for line in lines]
    assert not cutter.is_within


def test_a_line_of_the_full_length_passes() -> None:
    full = b"x" * (LONGEST_LINE - 1)
    assert Lines().feed(full + b"\n") == [full]
    assert Lines().feed(full + b"x\n") == [None]


# The page


def test_every_request_has_its_heading() -> None:
    assert re.findall(r"^### `([a-z_]+)`$", PAGE.read_text(encoding="utf-8"), re.MULTILINE) == list(VERBS)


def examples() -> list[tuple[str, str]]:
    """The exchanges of the page: a line of a client, and the line that answers it."""
    lines = re.findall(r"^    ([→←]) (\{.*\})$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    found = []
    for (way, asked), (back, got) in pairwise(lines):
        if (way, back) == ("→", "←"):
            found.append((asked, got))
    return found


@pytest.mark.parametrize(("asked", "got"), examples())
async def test_the_examples_of_the_page_are_what_happens(
    desk: NotedDesk, asked: str, got: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    desk.unread = [message("spark-ori", "the build is green"), message("spark-harper", "deploying then")]
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "AGENTS.md").write_text("Run make.\n")
    request = decode_request(asked.encode())
    try:
        response = Response(request.id, True, await answer(desk, request))
    except RequestFailed as failed:
        response = Response(request.id, False, error=str(failed))
    shown = encode(response).decode().replace(str(tmp_path), "/home/ori")
    assert json.loads(shown) == json.loads(got)


def test_every_request_has_an_example() -> None:
    assert {decode_request(asked.encode()).type for asked, _ in examples()} >= set(VERBS)
