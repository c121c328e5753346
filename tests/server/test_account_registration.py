"""REGISTER and VERIFY: making an account from within IRC (IRCv3 draft/account-registration)."""

import asyncio
import base64
from pathlib import Path

import pytest

from culture.protocol.message import Message
from culture.protocol.vocabulary import UserClass
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account
from culture.server.auth.authenticator import Credentials, ServerIdentity
from culture.server.ircd import IRCd
from tests.support.client import Client, connected, registered
from tests.support.clock import Clock, ClockedRuntime
from tests.support.servers import Serve, config_for

PASSWORD = "correct-horse"
CAP = "draft/account-registration"


def told(messages: list[Message]) -> tuple[str, ...]:
    """The one answer, without its text."""
    assert len(messages) == 1, messages
    return (messages[0].verb, *messages[0].params[:-1])


async def capabilities(client: Client) -> dict[str, str]:
    got = await client.ask("CAP LS 302")
    words = " ".join(each.params[-1] for each in got if each.verb == "CAP").split()
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def account_of(ircd: IRCd, nick: str) -> str | None:
    user = ircd.parts.network.user(nick)
    return user.account if user is not None else None


async def test_by_default_nobody_makes_accounts(ircd: IRCd) -> None:
    async with registered(ircd.port, "spark-ori") as ori:
        assert CAP not in await capabilities(ori)
        assert told(await ori.ask(f"REGISTER * * {PASSWORD}")) == ("FAIL", "REGISTER", "DISALLOWED", "*")
        assert told(await ori.ask("VERIFY ori 1")) == ("FAIL", "VERIFY", "DISALLOWED", "ori")
    assert ircd.parts.accounts.all() == ()


async def test_a_new_account_is_logged_in_and_no_person(serve: Serve) -> None:
    """draft/account-registration "REGISTER": as if it used SASL; the class is never human (decision 2)."""
    async with (
        serve(self_registration="inside") as ircd,
        registered(ircd.port, "spark-Ori", "message-tags account-notify") as ori,
        registered(ircd.port, "spark-ada", "account-notify") as ada,
    ):
        for client in (ori, ada):
            await client.join("#a")
        assert (await capabilities(ori))[CAP] == ""
        success, logged_in, *_ = await ori.ask(f"REGISTER * someone@example.org {PASSWORD}")
        assert (success.verb, success.params[:2]) == ("REGISTER", ("SUCCESS", "Ori"))
        assert (logged_in.verb, logged_in.params[2]) == ("900", "Ori")
        assert (await ada.expect("ACCOUNT")).params == ("Ori",)
        kept = AccountStore(ircd.parts.config.accounts_file, "spark").get("ori")
        assert kept is not None
        assert (kept.kind, kept.always_on, kept.verifier is not None) == (UserClass.BOT, False, True)
        assert ircd.parts.network.users["spark-ori"].kind == "bot"
        again = await ori.ask(f"REGISTER * * {PASSWORD}")
        assert told(again) == ("FAIL", "REGISTER", "ALREADY_AUTHENTICATED", "Ori")
        assert PASSWORD not in ircd.parts.config.accounts_file.read_text(encoding="utf-8")


async def test_the_password_is_good_for_the_next_login(serve: Serve) -> None:
    async with serve(self_registration="inside") as ircd:
        async with registered(ircd.port, "spark-ori") as ori:
            await ori.ask(f"REGISTER spark-ori * {PASSWORD}")
        async with connected(ircd.port) as ori:
            ori.send("CAP REQ :sasl")
            ori.send("AUTHENTICATE PLAIN")
            await ori.expect("AUTHENTICATE", "+")
            ori.send("AUTHENTICATE " + base64.b64encode(f"\0ori\0{PASSWORD}".encode()).decode())
            await ori.expect("903")


@pytest.mark.parametrize(
    ("line", "code", "about"),
    [
        ("REGISTER ada * correct-horse", "ACCOUNT_NAME_MUST_BE_NICK", "ada"),
        ("REGISTER * * short", "WEAK_PASSWORD", "ori"),
        ("REGISTER * * :tab\tand-more", "UNACCEPTABLE_PASSWORD", "ori"),
        ("VERIFY ori 123456", "INVALID_CODE", "ori"),
    ],
)
async def test_what_cannot_be_is_told(serve: Serve, line: str, code: str, about: str) -> None:
    async with serve(self_registration="inside") as ircd, registered(ircd.port, "spark-ori") as ori:
        assert told(await ori.ask(line)) == ("FAIL", line.split(" ")[0], code, about)
        assert ircd.parts.accounts.all() == ()


async def test_a_reserved_name_is_refused(serve: Serve) -> None:
    """Where nicks are free a reserved one can be had, but not as an account."""
    async with serve(self_registration="inside", nick_prefix="off") as ircd, registered(ircd.port, "all") as somebody:
        answer = await somebody.ask(f"REGISTER * * {PASSWORD}")
        assert told(answer) == ("FAIL", "REGISTER", "BAD_ACCOUNT_NAME", "all")


@pytest.mark.fault("C7")
async def test_a_name_that_is_somebodys_cannot_be_had(tmp_path: Path, serve: Serve) -> None:
    """C7: neither the name of an account, revoked or not, nor the nick of somebody who is here."""
    store = AccountStore(tmp_path / "accounts.json")
    store.add(new_account("ori", UserClass.HUMAN))
    store.revoke("ori")
    async with (
        serve(self_registration="anybody", nick_prefix="off") as ircd,
        registered(ircd.port, "Ori") as ori,
        registered(ircd.port, "ada"),
        connected(ircd.port) as thief,
    ):
        assert told(await ori.ask(f"REGISTER * * {PASSWORD}")) == ("FAIL", "REGISTER", "ACCOUNT_EXISTS", "Ori")
        thief.send("NICK ada")
        assert told(await thief.ask(f"REGISTER * * {PASSWORD}")) == ("FAIL", "REGISTER", "ACCOUNT_EXISTS", "ada")
        assert [each.verb for each in await thief.ask("USER u 0 * :U")] == ["433"]


async def test_two_at_once_and_one_has_it(serve: Serve) -> None:
    """The file decides, not who asked first."""
    async with serve(self_registration="anybody") as ircd, connected(ircd.port) as one, connected(ircd.port) as two:
        for client in (one, two):
            client.send("NICK spark-ori")
            client.send(f"REGISTER * * {PASSWORD}")
        answers = [(await client.receive()).params[:-1] for client in (one, two)]
        assert sorted(answers) == [("REGISTER", "ACCOUNT_EXISTS", "ori"), ("SUCCESS", "ori")]


async def test_before_registration_only_where_anybody_may(serve: Serve) -> None:
    """draft/account-registration "before-connect", COMPLETE_CONNECTION_REQUIRED, NEED_NICK."""
    async with serve(self_registration="inside") as ircd, connected(ircd.port) as ori:
        assert (await capabilities(ori))[CAP] == ""
        answer = await ori.ask(f"REGISTER * * {PASSWORD}")
        assert told(answer) == ("FAIL", "REGISTER", "COMPLETE_CONNECTION_REQUIRED", "*")
    async with serve(self_registration="anybody") as ircd, connected(ircd.port) as ori:
        assert (await capabilities(ori))[CAP] == "before-connect"
        assert told(await ori.ask(f"REGISTER * * {PASSWORD}")) == ("FAIL", "REGISTER", "NEED_NICK", "*")
        ori.send("NICK spark-ori")
        assert [each.verb for each in await ori.ask(f"REGISTER * * {PASSWORD}")] == ["REGISTER", "900"]
        ori.send("USER u 0 * :U")
        ori.send("CAP END")
        await ori.expect("001")
        assert account_of(ircd, "spark-ori") == "ori"


async def test_it_is_no_way_around_the_servers_password(serve: Serve) -> None:
    async with serve(self_registration="anybody", password="open-sesame") as ircd, connected(ircd.port) as ori:
        assert (await capabilities(ori))[CAP] == ""
        ori.send("NICK spark-ori")
        answer = await ori.ask(f"REGISTER * * {PASSWORD}")
        assert told(answer) == ("FAIL", "REGISTER", "COMPLETE_CONNECTION_REQUIRED", "*")


async def test_too_many_tries_have_to_wait(tmp_path: Path) -> None:
    """As many within the period as the limits say; here each connection counts for itself, as it is our own."""
    clock = Clock()
    config = config_for(tmp_path, self_registration="inside", limits={"new_accounts": 1, "new_accounts_period": 100})
    async with IRCd(config, runtime=ClockedRuntime(clock)).running() as ircd, registered(ircd.port, "spark-ori") as ori:
        assert (await ori.ask(f"REGISTER * * {PASSWORD}"))[0].params[0] == "SUCCESS"
        next(iter(ircd.parts.sessions)).account = None
        await ori.ask("NICK spark-other")
        for seconds, outcome in ((99, "TEMPORARILY_UNAVAILABLE"), (1, "other")):
            clock.now += seconds
            assert (await ori.ask(f"REGISTER * * {PASSWORD}"))[0].params[1] == outcome


async def test_a_file_that_cannot_be_written_is_nobodys_account(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **_named: object) -> None:
        raise OSError(28, "No space left on device")

    async with serve(self_registration="inside") as ircd, registered(ircd.port, "spark-ori") as ori:
        monkeypatch.setattr("culture.server.auth.account_store.replace_file", full)
        answer = await ori.ask(f"REGISTER * * {PASSWORD}")
        assert told(answer) == ("FAIL", "REGISTER", "TEMPORARILY_UNAVAILABLE", "ori")
        assert account_of(ircd, "spark-ori") is None


class Elsewhere:
    """Takes everybody, and makes them come from another machine."""

    def authenticate(self, connection: Credentials) -> ServerIdentity:
        return ServerIdentity()


async def test_a_password_is_not_taken_where_others_can_read_it(serve: Serve) -> None:
    async with (
        serve(self_registration="inside", authenticator=Elsewhere()) as ircd,
        registered(ircd.port, "spark-ori") as ori,
    ):
        next(iter(ircd.parts.sessions)).is_local = False
        assert CAP not in await capabilities(ori)
        answer = await ori.ask(f"REGISTER * * {PASSWORD}")
        assert told(answer) == ("FAIL", "REGISTER", "TEMPORARILY_UNAVAILABLE", "*")


async def test_nobody_waits_for_the_hash(serve: Serve) -> None:
    """The others are answered meanwhile, the client itself in order and under its label."""
    async with (
        serve(self_registration="inside") as ircd,
        registered(ircd.port, "spark-ori", "labeled-response batch") as ori,
        registered(ircd.port, "spark-ada") as ada,
    ):
        ori.send(f"@label=x REGISTER * * {PASSWORD}")
        ori.send("PING after")
        await ori.writer.drain()
        async with asyncio.timeout(30):
            await ada.sync()
        start, success, logged_in, end, pong = [await ori.receive() for _ in range(5)]
        assert (start.verb, start.tags["label"], end.verb, pong.verb) == ("BATCH", "x", "BATCH", "PONG")
        assert (success.verb, logged_in.verb) == ("REGISTER", "900")
