"""The account an agent gets on the server of its own machine."""

import stat

import pytest

from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from tests.cli.agents.conftest import NICK, Machine
from tests.support.client import registered


def store(machine: Machine) -> AccountStore:
    return AccountStore(machine.home / "accounts.json", "spark")


async def test_an_agent_gets_an_account_and_a_token_once(machine: Machine) -> None:
    """The running server lets it in at once; the token is nowhere but in a file of its owner's."""
    machine.agents({"nick": NICK})
    file = machine.home / "secrets" / NICK
    async with registered(machine.port, "spark-ori") as ori:
        await ori.join("#general")
        started = await machine.run("start", NICK)
        account = store(machine).get(NICK)
        assert account is not None and account.kind is UserClass.AGENT and account.always_on
        assert account.verifier is None and len(account.tokens) == 1
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        token = file.read_text().strip()
        log = (machine.home / "log" / f"{NICK}.log").read_text()
        assert token and token not in log + started.out + started.err
        said = await ori.ask(f"WHOIS {NICK}")
        assert any(line.verb == "330" and line.params[2] == NICK for line in said)
    await machine.run("restart", NICK)
    assert file.read_text().strip() == token and store(machine).get(NICK) == account


async def test_a_token_that_does_not_fit_is_made_anew(machine: Machine) -> None:
    machine.agents({"nick": NICK})
    await machine.run("start", NICK)
    await machine.run("stop", NICK)
    (machine.home / "secrets" / NICK).write_text("another\n")
    assert (await machine.run("start", NICK)).code == 0
    account = store(machine).get(NICK)
    assert account is not None and len(account.tokens) == 1


async def test_the_first_agent_account_makes_nobody_less_a_person(machine: Machine) -> None:
    """Only an account of class human makes it known who is a person."""
    machine.agents({"nick": NICK})
    async with registered(machine.port, "spark-ori", "message-tags") as ori:
        await ori.join("#general")
        await machine.run("start", NICK)
        assert not store(machine).knows_people
        async with registered(machine.port, "spark-dan", "message-tags") as dan:
            await dan.join("#general")
            ori.send("PRIVMSG #general :hello")
            assert (await dan.expect("PRIVMSG", "#general")).tags["agentirc.dev/class"] == "human"
            assert any(line.verb == "335" for line in await dan.ask(f"WHOIS {NICK}"))


async def test_a_persons_nick_is_not_taken(machine: Machine) -> None:
    machine.agents({"nick": NICK})
    await machine.run("account", "add", "bee", "--no-password")
    refused = await machine.run("start", NICK)
    assert refused.code == 78 and "the nick of the human account bee" in refused.err
    await machine.run("account", "revoke", "bee")


async def test_a_revoked_agent_stays_out(machine: Machine) -> None:
    machine.agents({"nick": NICK})
    await machine.run("account", "add", NICK, "--class", "agent", "--no-password")
    await machine.run("account", "revoke", NICK)
    refused = await machine.run("start", NICK)
    assert refused.code == 78 and "is revoked" in refused.err and machine.daemon() is None


@pytest.mark.parametrize("host", ["192.0.2.1", "irc.example.org"])
def test_for_a_server_elsewhere_it_is_said_how_to_get_one(
    host: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    from culture.cli.agents.agent_login import prepare_login
    from culture.config.agents import ServerAddress

    monkeypatch.setenv("CULTURE_HOME", str(tmp_path))
    hint = prepare_login(NICK, ServerAddress(host=host, port=6697, tls=True))
    assert hint is not None and f"culture account token {NICK}" in hint and f"secrets/{NICK}" in hint
