"""Exit codes that scripts rely on: of a refused denial, of `culture down`, and after Ctrl-C."""

import asyncio
import signal
from collections.abc import Sequence
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from culture.cli.agents import questions
from culture.cli.agents.irc_session import run
from culture.cli.app import assembled
from culture.cli.up import command as up

WAITING = [{"nick": nick, "id": id, "answer": None} for nick, id in (("spark-ada", "q1"), ("spark-bot", "q2"))]


@pytest.mark.parametrize(
    ("replies", "code"),
    [
        ({"spark-ada": "denied: q1", "spark-bot": "denied: q2"}, 0),
        ({"spark-ada": "you may not answer q1", "spark-bot": "denied: q2"}, 4),
        ({"spark-ada": "denied: q1", "spark-bot": "you may not answer q2"}, 4),
    ],
    ids=["all", "not the first", "not the last"],
)
def test_denial_that_an_agent_refuses_fails(
    monkeypatch: pytest.MonkeyPatch, replies: dict[str, str], code: int
) -> None:
    async def send(who: object, agent: str, texts: Sequence[str]) -> list[str]:
        return [replies[agent] for _ in texts]

    monkeypatch.setattr(questions, "current_person", lambda nick: None)
    monkeypatch.setattr(questions, "collect_questions", lambda *given, **options: WAITING)
    monkeypatch.setattr(questions, "_send_all", send)
    monkeypatch.setattr(questions, "current_person", lambda nick: object())
    done = CliRunner().invoke(assembled(), ["questions", "deny", "--all"])
    assert done.exit_code == code, done.output
    assert all(reply in done.output for reply in replies.values()), "every agent is asked"


@pytest.mark.parametrize(
    ("left", "code", "says"),
    [([], 0, "Nothing is left running."), (["spark (pid 7)"], 1, "spark (pid 7)")],
    ids=["nothing", "something"],
)
def test_down_fails_where_something_is_left(
    monkeypatch: pytest.MonkeyPatch, left: list[str], code: int, says: str
) -> None:
    class Stops:
        """Does nothing, and says what is left."""

        ended = ("spark",)

        def __getattr__(self, name: str) -> Any:
            return lambda *given: None

    Stops.left = left  # type: ignore[attr-defined]
    monkeypatch.setattr(up, "Shutdown", Stops)
    monkeypatch.setattr(up, "everybody", tuple)
    monkeypatch.setattr(up.pid_file, "all_running", dict)
    done = CliRunner().invoke(assembled(), ["down"])
    assert done.exit_code == code and says in done.output


def test_ctrl_c_while_a_command_waits_has_its_own_code() -> None:
    async def wait() -> None:
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()

    with pytest.raises(typer.Exit) as ended:
        run(wait())
    assert ended.value.exit_code == 5
