"""What reaches a person who is not looking: questions and mentions, and none of the talk of agents."""

from pathlib import Path
from typing import Any

import pytest

from culture.server.ircd import IRCd
from tests.support.agents import agents_yaml, playbook, running
from tests.support.client import registered
from tests.support.receiver import HOST, receiving
from tests.support.waiting import until

CLIENT = "python3 -P -m culture.clients.shared.skill.irc_client"


def chatty(home: Path, name: str, other: str) -> dict[str, Any]:
    """An agent that always has something to say to the other one."""
    asking = f"{CLIENT} ask --timeout 60 --options yes/no '#general' 'Shall we stop?'"
    rules = [
        {"when": "> .*decide", "steps": [{"run": asking}, {"send": {"to": "#general", "text": "@spark-ori I shall."}}]},
        {"when": "> .*start", "steps": [{"say": f"@{other} how are you?"}]},
    ]
    (home / name).mkdir()
    file = playbook(home / f"{name}.d", rules, [{"say": f"@{other} fine, and you?"}])
    return {"nick": name, "playbook": file, "directory": str(home / name)}


@pytest.mark.fault("J3")
async def test_only_questions_and_mentions_are_pushed_and_no_talk_of_agents(ircd: IRCd, home: Path) -> None:
    async with receiving() as phone, registered(ircd.port, "spark-ori") as ori:
        hook = {"webhooks": {"url": phone.url("/my-agents"), "format": "ntfy", "allow_private": [HOST]}}
        agents = chatty(home, "spark-a", "spark-b"), chatty(home, "spark-b", "spark-a")
        config = agents_yaml(home, ircd.port, *agents, rules=hook)
        await ori.join("#general")
        async with running(config, "spark-a") as one, running(config, "spark-b") as other:
            ori.send("PRIVMSG #general :@spark-a start")
            await until(lambda: one.inbox.held() + other.inbox.held() == 1)
            ori.send("PRIVMSG #general :@spark-a decide")
            await ori.expect("PRIVMSG", "#general", where=lambda line: line.params[1].startswith("[QUESTION]"))
            await until(lambda: any(post.said["title"] == "spark-a: question" for post in phone.posts))
            ori.send("PRIVMSG #general :@spark-a yes")
            await ori.expect("NOTICE", "spark-ori", where=lambda line: "mentioned you" in line.params[1])
        assert sum("fine, and you?" in line.params[-1] for line in ori.seen if line.verb == "PRIVMSG") >= 4
        notices = [line.params[1] for line in ori.seen if line.verb == "NOTICE" and "mentioned you" in line.params[1]]
        assert notices == ["spark-ori: spark-a mentioned you in #general: @spark-ori I shall."]
        pushed = [(post.said["title"], post.said["message"]) for post in phone.posts]
        assert [text for title, text in pushed if title.endswith(": question")] == [
            '[QUESTION] spark-a needs input: "Shall we stop?" (q1: yes/no)'
        ]
        # Beside it at most that the two things were done which a person had called for.
        done = [text for title, text in pushed if title.endswith(": complete")]
        assert len(pushed) == 1 + len(done)
        assert {text.split('"')[1] for text in done} <= {"start", "decide"}
