"""The model server speaks Chat Completions, for programs with other tools than Claude's."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.model import Model, model_server
from tests.support.model.shells import shell_call
from tests.test_model import exchange

STRING = {"type": "string"}
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"properties": {"command": STRING}}}}]


@pytest.fixture
async def model() -> AsyncIterator[Model]:
    async with model_server() as running:
        yield running


async def ask(model: Model, *messages: dict[str, Any], **fields: object) -> tuple[int, str]:
    body = {"model": "m", "messages": list(messages), "tools": TOOLS, **fields}
    return await asyncio.to_thread(exchange, model, "/v1/chat/completions", body)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


async def test_a_whole_answer(model: Model) -> None:
    _, text = await ask(model, user("[[think hm]] [[say hello]] [[bash true]] [[usage 7 8 9 10]]"))
    body = json.loads(text)
    (choice,) = body["choices"]
    assert choice["message"]["content"] == "hello"
    assert choice["message"]["reasoning_content"] == "hm"
    assert json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"]) == {"command": "true"}
    assert choice["finish_reason"] == "tool_calls"


async def test_a_stream_ends_with_what_it_cost(model: Model) -> None:
    _, text = await ask(model, user("[[say a]] [[say b]] [[usage 7 8 9 10]]"), stream=True)
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line]
    assert lines.pop() == "[DONE]"
    *chunks, last = [json.loads(line) for line in lines]
    assert [chunk["choices"][0]["delta"].get("content") for chunk in chunks] == ["a", "b", None]
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert last["usage"]["prompt_tokens"] == 26 and last["usage"]["completion_tokens"] == 8


async def test_results_of_tools_move_the_script_on(model: Model) -> None:
    script = user("[[bash true]] [[say after]]")
    _, text = await ask(model, user("[[say old]]"), script, {"role": "tool", "content": "out", "tool_call_id": "1"})
    assert json.loads(text)["choices"][0]["message"]["content"] == "after"
    assert model.journal.requests[0].results == ("out",)


async def test_what_a_program_asks_for_itself_runs_no_script(model: Model) -> None:
    _, text = await ask(model, user("Make a title for: [[err 500]]"), tools=[])
    assert json.loads(text)["choices"][0]["message"]["content"] == "ok"
    assert model.journal.asked("err") == []


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_an_error(model: Model, stream: bool) -> None:
    status, text = await ask(model, user("[[err 429 slow down]]"), stream=stream)
    assert status == 429
    assert json.loads(text)["error"]["message"] == "slow down"


async def test_a_supervisor_is_given_its_verdict(model: Model) -> None:
    model.journal.verdicts.append("[[say CORRECTION stop]]")
    _, text = await ask(model, user("You are a supervisor monitoring … [[say other]]"))
    assert json.loads(text)["choices"][0]["message"]["content"] == "CORRECTION stop"


def test_a_shell_gets_what_it_wants() -> None:
    wanted = {"properties": {"command": STRING, "is_background": {"type": "boolean"}}, "required": ["is_background"]}
    assert shell_call({"run_shell_command": wanted}, "true") == (
        "run_shell_command",
        {"is_background": False, "command": "true"},
    )
    several = {"properties": {"commands": {"type": "array"}}, "required": ["commands"]}
    assert shell_call({"run_commands": several}, "true") == ("run_commands", {"commands": ["true"]})
