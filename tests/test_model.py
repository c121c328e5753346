"""The model server of the tests answers as its prompts say."""

import asyncio
import http.client
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.model import Model, model_server
from tests.support.model.script import Call, Fail, Say, Usage, Wait, answer
from tests.support.model.told import untold
from tests.support.waiting import PATIENCE


@pytest.fixture
async def model() -> AsyncIterator[Model]:
    async with model_server() as running:
        yield running


def user(*blocks: dict[str, Any] | str) -> dict[str, Any]:
    return {"role": "user", "content": [b if isinstance(b, dict) else {"type": "text", "text": b} for b in blocks]}


def result(text: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": text}


def exchange(model: Model, path: str, body: dict[str, Any] | None, method: str = "POST") -> tuple[int, str]:
    connection = http.client.HTTPConnection(urlsplit(model.url).netloc, timeout=PATIENCE)
    try:
        connection.request(method, path, json.dumps(body) if body is not None else None)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


async def ask(model: Model, *messages: dict[str, Any], **fields: object) -> tuple[int, str]:
    body = {"model": "m", "messages": list(messages), **fields}
    return await asyncio.to_thread(exchange, model, "/v1/messages?beta=true", body)


def test_a_call_ends_an_answer_and_the_rest_is_the_next() -> None:
    script = "[[wait A]] [[bash echo hi]] [[usage 1 2 3 4]] [[say done]]"
    wait, call = answer(script, 0).steps
    assert wait == Wait("A")
    assert isinstance(call, Call) and call.input == {"command": "echo hi"}
    assert answer(script, 1).steps == (Say("done"),)
    assert answer(script, 1).usage == Usage(1, 2, 3, 4)
    assert answer(script, 2).steps == (Say("ok"),)
    assert answer("[[err 529]]", 0).steps == (Fail(529),)


async def test_a_whole_answer(model: Model) -> None:
    status, text = await ask(model, user("[[think hm]] [[say hello]] [[usage 7 8 9 10]]"))
    body = json.loads(text)
    assert status == 200
    assert [block["type"] for block in body["content"]] == ["thinking", "text"]
    assert body["stop_reason"] == "end_turn"
    assert body["usage"]["cache_creation_input_tokens"] == 10


async def test_a_stream_of_events(model: Model) -> None:
    _, text = await ask(model, user('[[say a]] [[call Read {"path": "x"}]]'), stream=True)
    events = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
    assert events[0]["type"] == "message_start"
    assert {event["type"] for event in events} >= {"content_block_start", "content_block_delta", "content_block_stop"}
    assert json.loads(events[5]["delta"]["partial_json"]) == {"path": "x"}
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
    assert events[-1]["type"] == "message_stop"


async def test_the_last_block_counts_and_asides_do_not(model: Model) -> None:
    await ask(model, user("[[say old]]", "[[bash true]] [[say new]]"), user(result("out"), "<system-reminder>x"))
    (request,) = model.journal.requests
    assert request.prompt == "[[bash true]] [[say new]]"
    assert request.results == ("out",)


@pytest.mark.parametrize("status", [400, 429, 529])
async def test_an_error(model: Model, status: int) -> None:
    got, text = await ask(model, user(f"[[err {status}]]"), stream=True)
    assert got == status
    assert json.loads(text)["type"] == "error"


async def test_an_answer_waits_for_its_release(model: Model) -> None:
    asked = asyncio.create_task(ask(model, user("[[wait GO]] [[say went]]")))
    await model.journal.arrival("[[wait GO]]")
    assert not asked.done()
    model.release("GO")
    assert "went" in (await asked)[1]


async def test_a_connection_breaks_off(model: Model) -> None:
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        await ask(model, user("[[say half]] [[die]]"), stream=True)


async def test_an_answer_that_hangs_ends_with_the_server() -> None:
    async with model_server() as model:
        asked = asyncio.create_task(ask(model, user("[[hang]]")))
        await model.journal.arrival("[[hang]]")
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        await asked


async def test_tokens_are_counted_and_presence_is_shown(model: Model) -> None:
    status, text = await asyncio.to_thread(exchange, model, "/v1/messages/count_tokens", {"messages": []})
    assert status == 200 and json.loads(text)["input_tokens"] > 0
    assert (await asyncio.to_thread(exchange, model, "/", None, "HEAD"))[0] == 200
    assert (await asyncio.to_thread(exchange, model, "/nowhere", {}))[0] == 404


def test_a_scripted_model_knows_only_what_its_request_tells() -> None:
    skill = "python3 -P -m culture.clients.shared.skill.irc_client"
    body = {
        "system": [
            {"type": "text", "text": f"`{skill} send '#a' 'words'`, `culture wiki read PAGE`, `TASK: groucho:`"}
        ],
        "tools": [{"name": "Bash"}, {"name": "mcp__dev-wiki__wiki_read"}],
        "messages": [
            user(f"do it [[bash {skill} spawn fixer]]"),
            {"role": "assistant", "content": [{"type": "text", "text": "culture wiki write"}]},
        ],
    }
    told = [
        f'{skill} send "#a" "TASK: groucho: git --fast culture wiki"',
        "git log --all | culture wiki read plans/a > b",
    ]
    more = [f"{skill} spawn fixer x", "culture wiki write a", "culture wiki read --json a", "echo TASK: fixer: x"]
    calls = [Call(None, {"command": command}, 1) for command in (*told, *more)]
    calls += [Call(f"mcp__dev-wiki__wiki_{what}", {}, 1) for what in ("read", "write")]
    assert untold(calls, body) == [
        "mcp__dev-wiki__wiki_write",
        f"{skill} spawn",
        "culture wiki write",
        "--json",
        "TASK: fixer:",
    ]


async def test_a_member_of_a_team_that_uses_what_it_was_not_told_fails_the_test() -> None:
    """The double refuses it, in whichever test; who is no member of a team may use anything."""
    member = "You are Kim. On IRC you are spark-Kim. You work on the task demo-1. Read: `culture wiki read PAGE`."
    script = "[[bash culture wiki write a]]"
    with pytest.raises(AssertionError, match="its request does not tell: culture wiki write"):
        async with model_server() as model:
            told = await ask(model, user("go [[bash culture wiki read a]]"), system=member)
            free = await ask(model, user(script), system="You are a helper.")
            status, text = await ask(model, user(script), system=member)
            assert told[0] == free[0] == 200
            assert status == 400 and "its request does not tell: culture wiki write" in text
