"""The closing text of a turn is posted unless the agent spoke there since it last worked, or wants silence."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from culture.clients.shared.closing_text import ClosingText
from culture.server.ircd import IRCd
from tests.clients.shared.test_asking import CLIENT
from tests.clients.shared.test_daemon import NICK, answered
from tests.support.agents import agents_yaml, playbook, running
from tests.support.client import registered
from tests.support.waiting import until

ASK = f"{CLIENT} ask --timeout 0.1 '#general' 'which branch?'"
ON_IT: dict[str, Any] = {"send": {"to": "#general", "text": "On it."}}
WORK: dict[str, Any] = {"run": "true"}
READ: dict[str, Any] = {"read": "#general"}


def say(text: str) -> dict[str, Any]:
    return {"say": text}


CASES: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "spoke before its work": ([ON_IT, WORK, say("It is 42.")], ["On it.", "It is 42."]),
    "spoke after its work": ([WORK, ON_IT, say("I have told them.")], ["On it."]),
    "reading is no work": ([ON_IT, READ, say("I have told them.")], ["On it."]),
    "asking is not speaking": ([{"run": ASK}, say("I wait.")], ["[QUESTION] which branch?", "I wait."]),
    "all since its work": (
        [say("I look."), WORK, say("Found it."), READ, say("It is 42.")],
        ["Found it.", "It is 42."],
    ),
    "ends with work": ([say("It is 42."), WORK], ["It is 42."]),
    "spoke and ends with work": ([say("I begin."), ON_IT, WORK], ["On it."]),
    "spoke elsewhere": ([{"send": {"to": "spark-ori", "text": "psst"}}, say("It is 42.")], ["It is 42."]),
    "silence": ([say("[no reply]")], []),
    "silence after work": ([WORK, say("[No reply]\n")], []),
    "silence at last": ([say("Not for me."), READ, say("[no reply]")], []),
    "silence in a sentence": ([say("I write [no reply] then.")], ["I write [no reply] then."]),
}


@pytest.mark.requirement("F29")
async def test_closing_text_is_posted_unless_the_agent_spoke_since_it_worked(ircd: IRCd, home: Path) -> None:
    rules = [{"when": f"{NICK} {case}\\.", "steps": steps} for case, (steps, _) in CASES.items()]
    config = agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#general")
        async with running(config, NICK) as daemon:
            for number, (case, (_, posted)) in enumerate(CASES.items()):
                ori.send(f"PRIVMSG #general :@{NICK} {case}.")
                await until(lambda turns=2 * number + 1: daemon.work.turn == turns)
                ori.send(f"PRIVMSG #general :@{NICK} next")
                heard = [*posted, "heard: next"]
                assert [await answered(ori, "#general") for _ in heard] == heard, case
                await until(lambda: not daemon.work.busy)


def call(id: str, name: str = "Bash", **given: object) -> Mapping[str, object]:
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def result(id: str) -> Mapping[str, object]:
    return {"type": "tool_result", "tool_use_id": id, "content": "", "is_error": False, "digest": ""}


def text(text: str) -> Mapping[str, object]:
    return {"type": "text", "text": text}


SEND = "python3 -P -m culture.clients.shared.skill.irc_client send '#general' hello"


def test_work_that_ends_after_a_message_is_work_since_then() -> None:
    closing = ClosingText()
    closing.begin()
    closing.take([call("1", command=SEND), call("2", command="make test")])
    closing.speak("#General")
    assert closing.has_spoken("#general")
    closing.take([result("1")])
    assert closing.has_spoken("#general")
    closing.take([result("2"), text("all green")])
    assert not closing.has_spoken("#general")
    assert closing.text("all green") == "all green"


def test_pieces_of_one_text_are_put_together_as_the_runner_has_them() -> None:
    closing = ClosingText()
    closing.begin()
    closing.take([text("First this.")])
    closing.take([text("It is for")])
    closing.take([text("ty-two.")])
    assert closing.text("It is forty-two.") == "First this.\n\nIt is forty-two."
    assert closing.text("something else") == "First this.\n\nIt is for\n\nty-two."
    closing.begin()
    assert closing.text("by the contract alone") == "by the contract alone"
