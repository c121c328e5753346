"""``culture say``, ``read``, ``ask`` and ``who``."""

import asyncio
import json
import os
from contextlib import suppress
from pathlib import Path

from tests.cli.agents.conftest import NICK, Machine
from tests.cli.shell import Shell
from tests.support.agents import playbook
from tests.support.client import registered


async def test_a_person_speaks_reads_and_looks_around(machine: Machine) -> None:
    async with registered(machine.port, "spark-dan", "message-tags echo-message") as dan:
        await dan.join("#general")
        said = await machine.run("say", "#general", "good", "morning")
        assert said.code == 0, said.err
        heard = await dan.expect("PRIVMSG", "#general", "good morning")
        assert heard.source.startswith("spark-ori!") and heard.tags["agentirc.dev/class"] == "human"
        assert (await dan.expect("PART", "#general")).source.startswith("spark-ori!")
        dan.send("PRIVMSG #general :and \x1b[2Jto you")
        await dan.expect("PRIVMSG", "#general")
        past = (await machine.run("read", "#general", "2")).out.splitlines()
        assert [line.partition("] ")[2] for line in past] == ["<spark-ori> good morning", "<spark-dan> and to you"]
        assert (await machine.run("read", "#general", "1")).out.count("\n") == 1
        assert (await machine.run("who", "#general")).out.startswith("spark-dan  unknown  operator")
        told = json.loads((await machine.run("read", "#general", "2", "--json")).out)
        assert [(each["nick"], each["text"]) for each in told] == [
            ("spark-ori", "good morning"),
            ("spark-dan", "and \x1b[2Jto you"),
        ]
        assert told[0]["msgid"] == heard.tags["msgid"]
        assert [each["nick"] for each in json.loads((await machine.run("who", "#general", "--json")).out)] == [
            "spark-dan"
        ]
        await machine.run("say", "spark-dan", "a word", "--nick", "spark-tal")
        assert (await dan.expect("PRIVMSG", "spark-dan", "a word")).source.startswith("spark-tal!")


async def test_who_tells_people_from_those_it_does_not_know(at_home: Shell) -> None:
    at_home.write("name: spark\n")
    added = await at_home.run("account", "add", "dan", "--user", str(os.getuid()))
    assert added.code == 0, added.err
    _, port = await at_home.serve()
    async with registered(port, "spark-dan") as dan, registered(port, "spark-eve") as eve:
        await dan.join("#general")
        await eve.join("#general")
        told = json.loads((await at_home.run("who", "#general", "--json")).out)
    assert {each["nick"]: each["class"] for each in told} == {"spark-dan": "human", "spark-eve": "unknown"}


async def test_what_cannot_be_said_is_an_error_with_the_nearest_name(machine: Machine) -> None:
    async with registered(machine.port, "spark-dan") as dan:
        await dan.join("#general")
        wrong = await machine.run("say", "#generl", "hello")
        assert wrong.code == 1 and "did you mean #general?" in wrong.err
        nobody = await machine.run("say", "spark-nobody", "hello")
        assert nobody.code == 4 and "spark-nobody" in nobody.err
        machine.agents({"nick": NICK})
        for words, hint in {
            ("read", "general"): "a channel begins with #, in quotes: '#general'",
            ("ask", NICK, "hello"): f"it does not run: `culture start {NICK}`",
        }.items():
            assert hint in (await machine.run(*words)).err, words
        unreachable = await machine.run("answer", NICK, "q1", "yes")
        assert unreachable.code == 1 and f"`culture start {NICK}`" in unreachable.err
        assert (await machine.run("who", "spark-nobody")).code == 1
        assert (await machine.run("say", "#general", " ")).code == 2
        assert not [line for line in await dan.ask("LIST") if line.verb == "322" and line.params[1] == "#generl"]


async def test_what_is_no_server_is_named_and_not_waited_for(at_home: Shell) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with suppress(ConnectionError):
            await reader.read()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        at_home.write(json.dumps({"server": {"host": "127.0.0.1", "port": port}, "agents": []}), "agents.yaml")
        told = await at_home.run("say", "#general", "hello")
    assert told.code == 1 and len(told.err.splitlines()) == 1, told.err
    assert f"127.0.0.1 port {port}: what answers there does not speak IRC" in told.err
    assert "`culture doctor`" in told.err


async def test_nobody_speaks_as_an_agent(machine: Machine) -> None:
    machine.shell.environment["CULTURE_NICK"] = NICK
    for words in (("say", "#general", "x"), ("read", "#general"), ("ask", NICK, "x"), ("who", NICK)):
        refused = await machine.run(*words)
        assert refused.code == 4 and f"you are {NICK}" in refused.err and "irc_client" in refused.err


async def test_nobody_borrows_the_name_and_the_token_of_an_agent(machine: Machine) -> None:
    machine.agents({"nick": NICK})
    await machine.run("start", NICK)
    for words in (("say", "#general", "x"), ("ask", NICK, "x"), ("answer", NICK, "q1", "yes")):
        refused = await machine.run(*words, "--nick", NICK.upper())
        assert refused.code == 2 and "is an agent" in refused.err
    assert (await machine.run("say", NICK, "hello", "--nick", "spark-tal")).code == 0


async def test_a_question_gets_its_answer(machine: Machine) -> None:
    machine.agents({"nick": NICK})
    await machine.run("start", NICK)
    assert (await machine.run("ask", NICK, "ping")).out == "pong\n"
    answered = await machine.run("ask", "#general", f"@{NICK}: ping")
    assert answered.code == 0 and answered.out == "pong\n"


async def test_who_asks_an_agent_that_gives_up_does_not_wait_for_the_end(machine: Machine, tmp_path: Path) -> None:
    rules = [{"when": "ping", "steps": [{"error": "529 overloaded"}]}]
    machine.agents({"nick": NICK, "playbook": playbook(tmp_path, rules)})
    await machine.run("start", NICK)
    for words in ((NICK, "ping"), ("#general", f"@{NICK}: ping")):
        asked = await machine.run("ask", *words, "--timeout", "3600")
        assert asked.code == 1 and not asked.out
        once_more, given_up = asked.err.splitlines()[-2:]
        assert once_more == f"{NICK}: [ERROR] 529 overloaded; I try once more."
        assert f"{NICK}: [ERROR] I gave up on spark-ori's message " in given_up and "529 overloaded" in given_up


async def test_without_a_server_the_address_of_agents_yaml_is_named(shell: Shell) -> None:
    shell.write("server: {host: 127.0.0.1, port: 1}\n", "agents.yaml")
    shell.write("name: spark\nlisten: [{port: 2}]\n")
    for words in (("say", "#general", "x"), ("ask", NICK, "x")):
        failed = await shell.run(*words)
        assert failed.code == 1 and "no server answers at 127.0.0.1 port 1." in failed.err


async def test_who_is_asked_and_away_is_told_before_the_wait(machine: Machine) -> None:
    machine.agents({"nick": NICK})
    await machine.run("start", NICK)
    await machine.run("stop", NICK)
    for words in ((NICK, "ping"), ("#general", f"@{NICK}: ping")):
        asked = await machine.run("ask", *words, "--timeout", "0.3")
        assert asked.code == 3 and f"{NICK} is away: Not connected" in asked.err


async def test_a_question_that_nobody_answers_ends(machine: Machine) -> None:
    async with registered(machine.port, "spark-dan") as dan:
        await dan.join("#general")
        asking = asyncio.create_task(machine.run("ask", "spark-dan", "there?", "--timeout", "0.3"))
        dan_heard = await dan.expect("PRIVMSG", "spark-dan", "there?")
        assert dan_heard.source.startswith("spark-ori!")
        ended = await asking
        assert ended.code == 3 and "nobody answered within 0.3 s" in ended.err


async def test_a_person_with_a_token_is_logged_in(machine: Machine) -> None:
    await machine.run("account", "add", "spark-ori", "--no-password")
    token = (await machine.run("account", "token", "spark-ori")).out
    (machine.home / "secrets").mkdir(mode=0o700)
    (machine.home / "secrets" / "spark-ori").write_text(token)
    async with registered(machine.port, "spark-dan", "message-tags account-tag") as dan:
        await dan.join("#general")
        assert (await machine.run("say", "#general", "hello")).code == 0
        assert (await dan.expect("PRIVMSG", "#general")).tags["account"] == "spark-ori"


async def test_a_control_word_said_to_an_agent_is_one_without_a_mention(machine: Machine) -> None:
    """`culture ask NICK "stand down"` is what `@NICK stand down` is in a channel, and its answer is printed."""
    machine.agents({"nick": NICK, "playbook": playbook(machine.home, [])})
    assert (await machine.run("start", NICK)).code == 0
    down = await machine.run("ask", NICK, "stand", "down", "--timeout", "20")
    assert (down.code, down.out) == (0, "standing down: only people wake me, until one of them says go on.\n"), down.err
    assert (await machine.status())["stood_down"]
    shown = (await machine.run("status")).out
    assert "  standing down  " in shown and f"say `@{NICK} go on`" in shown
    assert (await machine.run("say", NICK, "go on")).code == 0
    paused = await machine.run("ask", NICK, "Pause")
    assert paused.out == "paused: messages are kept until you say resume.\n"
    assert not (await machine.status())["stood_down"] and machine.turns() == 0
