"""docs/server/commands.md tells the truth: its examples are run, its tables are those of the server."""

import re
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from culture.config.links import LinkConfig
from culture.config.model import Admin, Operator
from culture.protocol.message import Message
from culture.protocol.vocabulary import UserClass
from culture.server.auth import account_watch
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.auth.password import PasswordVerifier
from culture.server.core.isupport import MODE_KINDS, USER_MODES, tokens
from culture.server.handlers.capability import OFFERED
from culture.server.ircd import IRCd
from tests.support.client import Client, connected
from tests.support.clock import Clock, ClockedRuntime
from tests.support.servers import config_for

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "server" / "commands.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### ([A-Z]+)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
EXAMPLES = {
    verb: re.findall(r"^    (.+)$", text.partition("Errors")[2], re.MULTILINE) for verb, text in SECTIONS.items()
}

# What the client of an example has done before.
BEFORE = {
    "BATCH": ["CAP REQ :batch draft/multiline"],
    "REDACT": ["CAP REQ :draft/message-redaction"],
    "AUTHENTICATE": ["CAP REQ :sasl"],
    "TAGMSG": ["CAP REQ :message-tags"],
    "STATS": ["OPER ori choose-your-own"],
    "LINKS": ["OPER ori choose-your-own"],
    "SETNAME": ["CAP REQ :setname"],
    "RENAME": ["CAP REQ :draft/channel-rename"],
    "KILL": ["OPER ori choose-your-own"],
    "REHASH": ["OPER ori choose-your-own"],
    "SQUIT": ["OPER ori choose-your-own"],
    "CONNECT": ["OPER ori choose-your-own"],
    "WALLOPS": ["OPER ori choose-your-own", "MODE spark-ori +w"],
    "JOIN": ["KICK #llama-cpp spark-ada", "PART #llama-cpp"],
}
SECONDS_LATER = {"WHOIS": 12, "STATS": 3 * 86_400 + 3_723}


async def arrive(stack: AsyncExitStack, ircd: IRCd, name: str) -> Client:
    client = await stack.enter_async_context(connected(ircd.port))
    client.send(f"NICK spark-{name}\r\nUSER {name} 0 * :{name.capitalize()}")
    await client.expect("001")
    await client.sync()
    return client


async def leave(client: Client) -> list[Message]:
    client.send("QUIT :good night")
    return await client.ended()


async def furnish(stack: AsyncExitStack, ircd: IRCd) -> Client:
    """The server of the examples, seen by ori: with ada, a bot, in a channel, eve elsewhere, bob gone."""
    await leave(await arrive(stack, ircd, "bob"))
    ori, ada, _ = [await arrive(stack, ircd, name) for name in ("ori", "ada", "eve")]
    for line in ("JOIN #llama-cpp", "TOPIC #llama-cpp :quantised models"):
        await ori.ask(line)
    for line in ("MODE spark-ada +B", "JOIN #llama-cpp"):
        await ada.ask(line)
    await ori.sync()
    return ori


def is_answer(line: str) -> bool:
    return line.startswith((":", "ERROR", "AUTHENTICATE +"))


@pytest.mark.parametrize("verb", sorted(set(EXAMPLES) - {"PASS", "USER"}))
async def test_the_examples_are_what_happens(tmp_path: Path, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line of the server in an example comes, in this order; others may come between."""
    # Whoever has the nick of a new account has a second to log in; the hash of a password may take longer here.
    monkeypatch.setattr(account_watch, "PERIOD", 3_600.0)
    clock = Clock()
    config = config_for(
        tmp_path,
        operators=(Operator(name="ori", password="choose-your-own"),),
        admin=Admin(email="ori@example.org"),
        self_registration="inside",
        links=(LinkConfig(name="thor", secret="correct-horse"),),
    )
    async with IRCd(config, runtime=ClockedRuntime(clock)).running() as ircd, AsyncExitStack() as stack:
        ori = await furnish(stack, ircd)
        if verb == "AUTHENTICATE":
            account = new_account("ori", UserClass.HUMAN, verifier=PasswordVerifier.of("correct horse"))
            AccountStore(config.accounts_file, "spark").add(account)
        for line in BEFORE.get(verb, ()):
            await ori.ask(line)
        clock.now += SECONDS_LATER.get(verb, 0)
        sent = [line for line in EXAMPLES[verb] if not is_answer(line)]
        got = await leave(ori) if verb == "QUIT" else [message for line in sent for message in await ori.ask(line)]
    answers = [str(message).rstrip(" ") for message in got]
    rest = iter(answers)
    missing = [line for line in EXAMPLES[verb] if is_answer(line) and line not in rest]
    assert missing == [], answers
    if not any(map(is_answer, EXAMPLES[verb])):
        assert [answer for answer in answers if re.match(r":spark 4\d\d ", answer)] == []


@pytest.mark.parametrize("verb", sorted(SECTIONS))
def test_a_section_has_syntax_errors_and_an_example(verb: str) -> None:
    assert re.search(rf"^    (@\S+ )?{verb}\b", SECTIONS[verb], re.MULTILINE)
    assert re.search(r"^Errors\b.*: ", SECTIONS[verb], re.MULTILINE)
    assert any(verb in line for line in EXAMPLES[verb])


def rows(heading: str) -> list[str]:
    """The first cells of the table under a heading."""
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None
    return re.findall(r"^\| `([^`]+)` \|", section[1], re.MULTILINE)


async def test_the_tables_are_those_of_the_server(tmp_path: Path) -> None:
    async with IRCd(config_for(tmp_path)).running() as ircd:
        skills = ircd.parts.skills
        every = [token.partition("=")[0] for group in tokens(ircd.parts.config, skills.isupport()) for token in group]
        assert sorted(rows("Features (005)")) == sorted(every)
        assert sorted(rows("Capabilities")) == sorted({**OFFERED, **skills.caps()})
    assert sorted(rows("User modes")) == sorted(USER_MODES)
    assert sorted(rows("Channel modes")) == sorted(MODE_KINDS)
