"""IRC operators: OPER, KILL, WALLOPS, REHASH."""

import hashlib
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from culture.config.errors import ConfigError, Problem
from culture.config.model import Operator, ServerConfig
from culture.protocol.stream import LINE_LIMIT
from culture.server.auth.authenticator import Credentials, ServerIdentity
from culture.server.ircd import IRCd
from tests.server.conftest import Crowd
from tests.server.rooms import codes, lines
from tests.support.client import Client, registered
from tests.support.servers import Serve, config_for, serving

DIGEST = hashlib.sha256(b"hunter2").hexdigest()
OPERATORS = (
    Operator(name="root", password="very secret"),
    Operator(name="hashed", password=f"sha256${DIGEST}"),
    Operator(name="upper", password=f"sha256${DIGEST.upper()}"),
    Operator(name="broken", password="sha256$"),
)


@pytest.fixture
async def ircd(tmp_path: Path) -> AsyncIterator[IRCd]:
    """A server with operators."""
    async with serving(tmp_path, operators=OPERATORS) as running:
        yield running


@pytest.fixture
async def crowd(ircd: IRCd) -> AsyncIterator[Crowd]:
    async with AsyncExitStack() as stack:
        yield Crowd(ircd, stack)


async def operator(crowd: Crowd, nick: str, *channels: str) -> Client:
    client = await crowd.join(nick, *channels)
    assert codes(await client.ask("OPER root :very secret")) == ["381", "MODE"]
    return client


# OPER


@pytest.mark.parametrize(("name", "password"), [("root", "very secret"), ("hashed", "hunter2"), ("upper", "hunter2")])
async def test_the_right_password_makes_an_operator(crowd: Crowd, name: str, password: str) -> None:
    """RFC 2812 §3.1.4"""
    ori = await crowd.join("spark-ori")
    answer = lines(await ori.ask(f"OPER {name} :{password}"))
    assert answer[0][:2] == ("381", "spark-ori")
    assert answer[1:] == [("MODE", "spark-ori", "+o")]
    assert codes(await ori.ask(f"OPER {name} :{password}")) == ["381"]
    assert lines(await ori.ask("MODE spark-ori -o")) == [("MODE", "spark-ori", "-o")]
    assert codes(await ori.ask("WALLOPS :may I?")) == ["481"]


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("root", "very Secret"),
        ("root", ""),
        ("ROOT", "very secret"),
        ("nobody", "very secret"),
        ("nobody", ""),
        ("hashed", "hunter3"),
        ("hashed", f"sha256${DIGEST}"),
        ("hashed", DIGEST),
        ("broken", ""),
        ("broken", "sha256$"),
    ],
)
async def test_any_other_password_does_not(
    crowd: Crowd, caplog: pytest.LogCaptureFixture, name: str, password: str
) -> None:
    """RFC 2812 §3.1.4: 464, the same for a name that does not exist; no password is logged"""
    ori = await crowd.join("spark-ori")
    with caplog.at_level(logging.DEBUG):
        (refused,) = lines(await ori.ask(f"OPER {name} :{password}"))
    assert refused[:2] == ("464", "spark-ori")
    assert len(refused) == 3
    assert codes(await ori.ask("WALLOPS :may I?")) == ["481"]
    assert not password or password not in caplog.text


async def test_a_password_is_needed(crowd: Crowd) -> None:
    """RFC 2812 §3.1.4: 461"""
    ori = await crowd.join("spark-ori")
    assert codes(await ori.ask("OPER root")) == ["461"]


# KILL


async def test_an_operator_ends_the_connection_of_somebody(crowd: Crowd) -> None:
    """RFC 2812 §3.7.1: the victim is told by whom and why, the others see a QUIT"""
    ori = await operator(crowd, "spark-ori", "#room")
    ada, eve = await crowd.join("spark-ada", "#room"), await crowd.join("spark-eve", "#room")
    for client in (ori, ada):
        await client.sync()
    assert lines(await ori.ask("KILL spark-EVE :too loud")) == [("QUIT", "Killed (spark-ori (too loud))")]
    killed, error = await eve.ended()
    assert killed.source.startswith("spark-ori!")
    assert lines([killed]) == [("KILL", "spark-eve", "too loud")]
    assert error.verb == "ERROR"
    assert "Killed (spark-ori (too loud))" in error.params[0]
    (seen,) = await ada.sync()
    assert seen.source.startswith("spark-eve!")
    assert lines([seen]) == [("QUIT", "Killed (spark-ori (too loud))")]
    again = await crowd.join("spark-eve")
    assert again.nick == "spark-eve"


async def test_others_may_not_kill_not_even_themselves(crowd: Crowd) -> None:
    """RFC 2812 §3.7.1: 481"""
    ori, ada = await crowd.join("spark-ori"), await crowd.join("spark-ada")
    assert codes(await ori.ask("KILL spark-ada :no")) == ["481"]
    assert codes(await ori.ask("KILL spark-ori :no")) == ["481"]
    assert await ada.sync() == []


async def test_whom_an_operator_cannot_kill(crowd: Crowd) -> None:
    """RFC 2812 §3.7.1: 401, 483, 461"""
    ori = await operator(crowd, "spark-ori")
    assert codes(await ori.ask("KILL nobody :no")) == ["401"]
    assert codes(await ori.ask("KILL spark :no")) == ["483"]
    assert codes(await ori.ask("KILL")) == ["461"]


async def test_a_kill_without_a_reason_says_so(crowd: Crowd) -> None:
    ori, ada = await operator(crowd, "spark-ori"), await crowd.join("spark-ada")
    assert await ori.ask("KILL spark-ada :") == []
    assert lines(await ada.ended())[0] == ("KILL", "spark-ada", "No reason given")


async def test_operators_may_kill_themselves(crowd: Crowd) -> None:
    ori = await operator(crowd, "spark-ori")
    ori.send("KILL spark-ori :enough")
    assert codes(await ori.ended()) == ["KILL", "ERROR"]


async def test_a_long_reason_fits_into_every_line(crowd: Crowd) -> None:
    """RFC 2812 §2.3"""
    ori, ada = await operator(crowd, "spark-" + "o" * 26, "#room"), await crowd.join("spark-" + "a" * 26, "#room")
    await ori.sync()
    ori.send(f"KILL {ada.nick} :{'é' * 220}")
    for raw in (await ada.line(), await ada.line(), await ori.line()):
        assert len(raw) <= LINE_LIMIT
        assert "éé" in raw.decode()


class OneAccount:
    """Takes everybody called eve or alike for the same person."""

    def authenticate(self, connection: Credentials) -> ServerIdentity:
        """Admit."""
        return ServerIdentity("eve", "human") if connection.nick.startswith("spark-eve") else ServerIdentity()


async def test_a_kill_ends_every_session_of_the_user(serve: Serve) -> None:
    """Decision 1: one user, any number of sessions; others see one QUIT"""
    async with (
        serve(operators=OPERATORS, authenticator=OneAccount()) as ircd,
        registered(ircd.port, "spark-ori") as ori,
        registered(ircd.port, "spark-eve") as desk,
        registered(ircd.port, "spark-eve-phone") as phone,
    ):
        await desk.join("#room")
        await ori.join("#room")
        await ori.ask("OPER root :very secret")
        assert codes(await ori.ask("KILL spark-eve :bye")) == ["QUIT"]
        assert codes(await desk.ended())[-2:] == codes(await phone.ended())[-2:] == ["KILL", "ERROR"]


# WALLOPS


async def test_who_wants_to_hears_what_operators_say_to_all(crowd: Crowd) -> None:
    """RFC 2812 §4.7"""
    ori, ada = await operator(crowd, "spark-ori"), await crowd.join("spark-ada")
    eve = await crowd.join("spark-eve")
    await ada.ask("MODE spark-ada +w")
    assert await ori.ask("WALLOPS :maintenance at noon") == []
    (heard,) = await ada.sync()
    assert heard.source.startswith("spark-ori!")
    assert lines([heard]) == [("WALLOPS", "maintenance at noon")]
    assert await eve.sync() == []
    await ori.ask("MODE spark-ori +w")
    assert lines(await ori.ask("WALLOPS :and me")) == [("WALLOPS", "and me")]


async def test_others_may_not_speak_to_all(crowd: Crowd) -> None:
    """RFC 2812 §4.7: 481, 461"""
    ada = await crowd.join("spark-ada")
    assert codes(await ada.ask("WALLOPS :hello")) == ["481"]
    ori = await operator(crowd, "spark-ori")
    assert codes(await ori.ask("WALLOPS")) == ["461"]
    assert codes(await ori.ask("WALLOPS :")) == ["461"]


async def test_of_a_long_text_to_all_nothing_is_lost(crowd: Crowd) -> None:
    """Decision 6"""
    ori = await operator(crowd, "spark-" + "o" * 26)
    await ori.ask(f"MODE {ori.nick} +w")
    text = " ".join(["word"] * 100)
    heard = await ori.ask(f"WALLOPS :{text}")
    assert len(heard) > 1
    assert all(len(bytes(line)) <= LINE_LIMIT for line in heard)
    assert " ".join(line.params[0] for line in heard) == text


# REHASH


async def test_an_operator_has_the_configuration_read_again(ircd: IRCd, crowd: Crowd, tmp_path: Path) -> None:
    """RFC 2812 §4.2: 382; what changed holds at once"""
    ori = await operator(crowd, "spark-ori")
    ircd.reload = lambda: config_for(tmp_path, operators=(), limits={"away_length": 5})
    (answer,) = lines(await ori.ask("REHASH"))
    assert answer[:2] == ("382", "spark-ori")
    await ori.ask("AWAY :0123456789")
    assert lines(await ori.ask("PRIVMSG spark-ori :me"))[0][3] == "01234"
    ada = await crowd.join("spark-ada")
    assert codes(await ada.ask("OPER root :very secret")) == ["464"]


async def test_a_faulty_configuration_is_told_and_changes_nothing(ircd: IRCd, crowd: Crowd) -> None:
    def reload() -> ServerConfig:
        raise ConfigError(
            [
                Problem(Path("culture.yaml"), 3, ("limits", "modes"), "must be a number", "for example 12"),
                Problem(Path("culture.yaml"), 7, ("motd",), "é" * 600),
            ]
        )

    ori = await operator(crowd, "spark-ori")
    ircd.reload = reload
    before = ircd.parts.config
    answer = await ori.ask("REHASH")
    assert {line[:2] for line in lines(answer)} == {("NOTICE", "spark-ori")}
    said = [line.params[1] for line in answer]
    assert "culture.yaml:3: limits.modes: must be a number (for example 12)" in said
    assert "".join(said).count("é") == 600
    assert all(len(bytes(line)) <= LINE_LIMIT for line in answer)
    assert ircd.parts.config is before
    assert await crowd.join("spark-ada")


async def test_others_may_not_have_it_read(crowd: Crowd) -> None:
    """RFC 2812 §4.2: 481"""
    ada = await crowd.join("spark-ada")
    assert codes(await ada.ask("REHASH")) == ["481"]
