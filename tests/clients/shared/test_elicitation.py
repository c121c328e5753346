"""What an agent's program asks its user becomes questions with options, and the answers values of a form."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from culture.clients.codex.user_requests import answer_form, answer_questions, tool_call
from culture.clients.shared.questions.elicitation import Elicitation, content_of_schema, fields_of_schema, option_words
from culture.clients.shared.turn import FormField, FormReply
from culture.config.agents import TrustConfig
from culture.protocol.vocabulary import UserClass
from tests.support.asking import NICK, Scene

CACHE = FormField("Which cache?", (("Redis", "a server"), ("In memory", "")))
FORM = {
    "type": "object",
    "properties": {
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "small"}, {"const": "l", "title": "large"}]},
        "count": {"type": "integer"},
        "extras": {"type": "array", "items": {"enum": ["milk", "sugar"]}},
        "now": {"type": "boolean", "description": "or later"},
    },
}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path, TrustConfig())
    yield made
    made.close()


async def consulted(
    stage: Scene, fields: Sequence[FormField], *said: str, kind: UserClass = UserClass.HUMAN
) -> FormReply:
    """What comes of the fields when somebody says these things, one after the other."""
    asking = asyncio.create_task(Elicitation(stage.questions, lambda: "#general").ask(fields))
    for each in said:
        await stage.settled()
        stage.say("spark-ori", f"@{NICK} {each}", kind)
    await stage.settled()
    assert asking.done(), stage.room.lines
    return asking.result()


async def test_an_option_is_chosen_by_its_number_or_its_word(stage: Scene) -> None:
    assert await consulted(stage, [CACHE], "use 2 please") == FormReply(("In memory",))
    assert stage.room.lines[-1][1].splitlines() == [
        "[QUESTION] Which cache?",
        "  1: Redis: a server",
        "  2: In memory",
        f"Waiting for response. Reply with: @{NICK} 1/2",
    ]
    assert option_words(FormField("x", (("red", ""), ("blue", "")))) == ("red", "blue")
    assert option_words(FormField("x", (("red", ""), ("Red", "")))) == ("1", "2")
    assert await consulted(stage, [FormField("May I?", (("yes", ""), ("no", "")))], "no, later") == FormReply(("no",))
    toppings = FormField("Which?", (("milk", ""), ("brown sugar", "")), several=True)
    assert await consulted(stage, [toppings], "2, milk") == FormReply(("brown sugar, milk",))


async def test_words_beside_an_option_reach_the_agent(stage: Scene) -> None:
    """Item A4: the program is given the option alone, and the rest of the answer was lost."""
    assert await consulted(stage, [CACHE], "use 2 please") == FormReply(("In memory",))
    assert stage.mail() == []
    assert await consulted(stage, [CACHE], "q2 2, with port 6380") == FormReply(("In memory",))
    may_it = FormField("May I?", (("yes", ""), ("no", "")))
    assert await consulted(stage, [may_it], "no, later") == FormReply(("no",))
    assert [mail.text.removeprefix(f"@{NICK} ") for mail in stage.mail()] == ["q2 2, with port 6380", "no, later"]
    assert all("answers your question" in mail.remark for mail in stage.mail())


async def test_without_an_answer_the_program_is_told_why(stage: Scene) -> None:
    assert (await consulted(stage, [CACHE], "abort")).why == "aborted by spark-ori: abort"
    assert (await consulted(stage, [CACHE], "deny")).values is None
    back = await consulted(stage, [CACHE], "what would each of them cost?")
    assert back.values is None and "asks back" in back.why and "irc_client ask --again q3" in back.why
    assert stage.questions.open != []
    assert "6 questions at once" in (await consulted(stage, [CACHE] * 6)).why
    stage.room.broken = True
    assert (await consulted(stage, [FormField("Else?")])).why == "nobody can be asked: no connection"


async def test_answers_before_one_that_is_missing_are_not_lost(stage: Scene) -> None:
    asked = await consulted(stage, [CACHE, FormField("How large?"), FormField("And why?")], "1", "2 GB", "deny")
    assert asked == FormReply(
        why='"Which cache?" was answered: "Redis". "How large?" was answered: "2 GB". denied by spark-ori: deny'
    )


@pytest.mark.parametrize("label", ["Pause", "abort", "Deny", "status", "Q1"])
async def test_a_label_that_means_something_else_is_answered_by_its_number(stage: Scene, label: str) -> None:
    """``abort`` would abort the task, ``pause`` pause the agent, ``q1`` name a question."""
    assert await consulted(stage, [FormField("Which?", ((label, ""), ("Later", "")))], "1") == FormReply((label,))


def test_a_form_of_a_server_becomes_fields_and_values() -> None:
    fields = fields_of_schema("lunch: Coffee?", FORM)
    assert [field.text for field in fields] == [
        "lunch: Coffee? (size)",
        "lunch: Coffee? (count)",
        "lunch: Coffee? (extras)",
        "lunch: Coffee? (now: or later)",
    ]
    assert [option_words(field) for field in fields] == [("small", "large"), (), (), ("yes", "no")]
    values = ("large", "3", "milk, sugar", "no")
    assert content_of_schema(FORM, values) == {"size": "l", "count": 3, "extras": ["milk", "sugar"], "now": False}
    assert content_of_schema(FORM, ("large", "three", "milk", "no")) is None
    assert [option_words(each) for each in fields_of_schema("Go on?", {})] == [("yes", "no")]
    assert (content_of_schema({}, ("yes",)), content_of_schema({}, ("no",))) == ({}, None)


async def test_codex_asks_for_no_secret_in_a_room_and_for_a_tool_by_a_permission() -> None:
    async def never(fields: Sequence[FormField]) -> FormReply:
        raise AssertionError(fields)

    async def rice(fields: Sequence[FormField]) -> FormReply:
        return FormReply(("rice",))

    secret = {"questions": [{"id": "k", "question": "API key?", "isSecret": True}]}
    told = await answer_questions(secret, never)
    assert "secrets are not asked for" in told["answers"]["k"]["answers"][0]
    form = {"serverName": "lunch", "message": "Dish?", "mode": "form"}
    schema = {"properties": {"dish": {"type": "string"}}}
    assert await answer_form({**form, "requestedSchema": schema}, rice) == {
        "action": "accept",
        "content": {"dish": "rice"},
    }
    assert (await answer_form({**form, "mode": "url", "url": "x"}, never))["action"] == "decline"
    meta = {"codex_approval_kind": "mcp_tool_call", "tool_params": {"a": 1}, "persist": "always"}
    tool, given = tool_call({**form, "_meta": meta})
    assert tool == "lunch.tool" and given["tool_params"] == {"a": 1} and "persist" not in given
