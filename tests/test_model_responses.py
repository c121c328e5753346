"""The model server of the tests speaks the OpenAI Responses API."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.model import Model, model_server
from tests.test_model import exchange

SHELL = {"type": "function", "name": "exec_command"}


@pytest.fixture
async def model() -> AsyncIterator[Model]:
    async with model_server() as running:
        yield running


def user(*texts: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text} for text in texts]
    return {"type": "message", "role": "user", "content": content}


def result(text: str, call: str = "call_0001") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call, "output": text}


async def ask(model: Model, *items: dict[str, Any], **fields: object) -> tuple[int, str]:
    body = {"model": "m", "input": list(items), **fields}
    return await asyncio.to_thread(exchange, model, "/v1/responses", body)


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]


async def test_a_whole_answer(model: Model) -> None:
    status, text = await ask(model, user("[[think hm]] [[say hello]] [[usage 7 8 9 10]]"))
    body = json.loads(text)
    assert status == 200 and body["status"] == "completed"
    assert [item["type"] for item in body["output"]] == ["reasoning", "message"]
    assert body["usage"]["total_tokens"] == 7 + 8 + 9 + 10
    assert body["usage"]["input_tokens_details"]["cached_tokens"] == 9


async def test_a_stream_of_events(model: Model) -> None:
    _, text = await ask(model, user("[[say a]] [[bash ls]]"), stream=True, tools=[SHELL])
    heard = events(text)
    assert heard[0]["type"] == "response.created" and heard[-1]["type"] == "response.completed"
    assert [event["sequence_number"] for event in heard] == list(range(len(heard)))
    said, called = (event["item"] for event in heard if event["type"] == "response.output_item.done")
    assert said["content"][0]["text"] == "a"
    assert (called["name"], json.loads(called["arguments"])) == ("exec_command", {"cmd": "ls"})
    assert heard[-1]["response"]["output"] == [said, called]


async def test_a_tool_in_a_namespace_is_called_there(model: Model) -> None:
    tools = [SHELL, {"type": "namespace", "name": "mcp__marmot", "tools": [{"name": "whistle"}]}]
    _, text = await ask(model, user("[[call whistle {}]]"), tools=tools)
    (called,) = json.loads(text)["output"]
    assert (called["namespace"], called["name"]) == ("mcp__marmot", "whistle")


async def test_the_last_prompt_counts_and_asides_do_not(model: Model) -> None:
    new = user("[[bash true]] [[say new]]")
    await ask(model, user("[[say old]]"), new, result("out"), user("<environment_context>x"), user("[SUPERVISOR/OK] y"))
    (request,) = model.journal.requests
    assert (request.prompt, request.results) == ("[[bash true]] [[say new]]", ("out",))


async def test_the_output_of_a_tool_that_nobody_called_is_a_prompt(model: Model) -> None:
    outside = {"type": "function_call_output", "name": "irc", "output": "[[bash true]] [[say from outside]]"}
    _, text = await ask(model, user("[[say old]]"), outside, result("[[say no script]]"))
    assert json.loads(text)["output"][0]["content"][0]["text"] == "from outside"
    assert model.journal.requests[0].results == ("[[say no script]]",)


@pytest.mark.parametrize("status", [400, 429, 500])
async def test_an_error(model: Model, status: int) -> None:
    got, text = await ask(model, user(f"[[err {status} words]]"), stream=True)
    assert got == status and json.loads(text)["error"]["message"] == "words"
    got, text = await ask(model, user(f"[[say half]] [[err {status} usage_limit_reached]]"), stream=True)
    assert got == 200
    assert events(text)[-1]["response"]["error"]["code"] == "usage_limit_reached"


async def test_what_is_too_long_is_refused(model: Model) -> None:
    model.window = 1000
    assert (await ask(model, user("short")))[0] == 200
    status, text = await ask(model, user("x" * 2000))
    assert status == 400 and json.loads(text)["error"]["code"] == "context_length_exceeded"


async def test_a_context_is_shortened_by_the_provider(model: Model) -> None:
    _, text = await ask(model, user("[[say old]]"), {"type": "compaction_trigger"})
    assert [item["type"] for item in json.loads(text)["output"]] == ["compaction"]


async def test_a_supervisor_gets_the_verdicts(model: Model) -> None:
    model.journal.verdicts = ["[[say ESCALATION help]]"]
    told = "You are a supervisor monitoring an agent"
    _, first = await ask(model, user("[[say script of others]]"), instructions=told)
    developer = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": told}]}
    _, second = await ask(model, developer, user("[[say script of others]]"))
    assert "ESCALATION help" in first and '"OK"' in second


async def test_who_wants_a_websocket_is_sent_back(model: Model) -> None:
    assert (await asyncio.to_thread(exchange, model, "/v1/responses", None, "GET"))[0] == 426
