"""MARKREAD: how far one has read, on all of one's devices (IRCv3 draft/read-marker)."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.server.auth.authenticator import Credentials, ServerIdentity
from culture.server.ircd import IRCd
from tests.server.conftest import Crowd
from tests.support.client import Client, connected, registered
from tests.support.clock import Clock, ClockedRuntime
from tests.support.servers import Serve, config_for, serving

CAP = "draft/read-marker"
EARLY, LATE = "2019-01-04T14:33:26.123Z", "2019-06-01T12:00:00.000Z"


class ByPassword:
    """Who shows a password is logged in to the account of that name."""

    def authenticate(self, connection: Credentials) -> ServerIdentity:
        return ServerIdentity(connection.password, "human") if connection.password else ServerIdentity()


async def log_in(client: Client, caps: str = CAP) -> None:
    client.send("PASS ori")
    await client.register("spark-ori", caps)


def told(messages: list) -> list[tuple[str, ...]]:
    return [(each.verb, *(each.params[:-1] if each.verb == "FAIL" else each.params)) for each in messages]


@pytest.fixture
async def with_accounts(tmp_path: Path) -> AsyncIterator[IRCd]:
    async with serving(tmp_path, ByPassword()) as running:
        yield running


async def test_a_marker_is_kept_and_moves_forward_only(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#a", caps=CAP)
    assert told(await ori.ask("MARKREAD #a")) == [("MARKREAD", "#a", "*")]
    assert told(await ori.ask(f"MARKREAD #a timestamp={EARLY}")) == [("MARKREAD", "#a", f"timestamp={EARLY}")]
    assert told(await ori.ask(f"MARKREAD #A timestamp={LATE}")) == [("MARKREAD", "#A", f"timestamp={LATE}")]
    for again in (EARLY, LATE):
        assert told(await ori.ask(f"MARKREAD #a timestamp={again}")) == [("MARKREAD", "#a", f"timestamp={LATE}")]
    assert told(await ori.ask("MARKREAD spark-ada")) == [("MARKREAD", "spark-ada", "*")]


async def test_nobody_else_hears_of_it(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#a", caps=CAP)
    ada = await crowd.join("spark-ada", "#a", caps=CAP)
    await ori.ask(f"MARKREAD #a timestamp={EARLY}")
    assert await ada.sync() == []
    assert told(await ada.ask("MARKREAD #a")) == [("MARKREAD", "#a", "*")]


async def test_what_is_yet_to_come_cannot_have_been_read(tmp_path: Path) -> None:
    clock = Clock()
    async with (
        IRCd(config_for(tmp_path), runtime=ClockedRuntime(clock)).running() as ircd,
        registered(ircd.port, "spark-ori", CAP) as ori,
    ):
        assert told(await ori.ask("MARKREAD #a timestamp=2999-01-01T00:00:00.000Z")) == [
            ("MARKREAD", "#a", "timestamp=2027-01-15T08:00:00.000Z")
        ]


async def test_with_a_join_comes_the_marker(crowd: Crowd) -> None:
    """draft/read-marker, "Command flows": after JOIN, before 366."""
    ori = await crowd.join("spark-ori", caps=f"{CAP} labeled-response batch")
    await crowd.join("spark-ada", "#a")
    assert [each[0] for each in told(await ori.ask("JOIN #a"))] == ["JOIN", "MARKREAD", "353", "366"]
    await ori.ask(f"MARKREAD #a timestamp={EARLY}")
    await ori.ask("PART #a")
    labelled = await ori.ask("@label=1 JOIN #a")
    assert [each.verb for each in labelled] == ["BATCH", "JOIN", "MARKREAD", "353", "366", "BATCH"]
    assert labelled[2].params == ("#a", f"timestamp={EARLY}")
    plain = await crowd.join("spark-plain")
    assert "MARKREAD" not in [each.verb for each in await plain.join("#a")]


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("MARKREAD", ("NEED_MORE_PARAMS",)),
        ("MARKREAD #a *", ("INVALID_PARAMS", "*")),
        ("MARKREAD #a timestamp=never", ("INVALID_PARAMS", "timestamp=never")),
        ("MARKREAD #a timestamp=2019-02-30T00:00:00.000Z", ("INVALID_PARAMS", "timestamp=2019-02-30T00:00:00.000Z")),
        (f"MARKREAD #a {EARLY}", ("INVALID_PARAMS", EARLY)),
        ("MARKREAD :", ("INVALID_PARAMS", "*")),
        ("MARKREAD :#a b", ("INVALID_PARAMS", "*")),
        ("MARKREAD 5", ("INVALID_PARAMS", "5")),
    ],
)
async def test_what_makes_no_sense_is_told(crowd: Crowd, line: str, answer: tuple[str, ...]) -> None:
    ori = await crowd.join("spark-ori", caps=CAP)
    assert told(await ori.ask(line)) == [("FAIL", "MARKREAD", *answer)]


async def test_the_oldest_marker_goes_when_there_are_too_many(serve: Serve) -> None:
    """``limits.read_markers``"""
    async with serve(limits={"read_markers": 2}) as ircd, registered(ircd.port, "spark-ori", CAP) as ori:
        for channel, time in (("#a", EARLY), ("#b", EARLY), ("#a", LATE), ("#c", EARLY)):
            await ori.ask(f"MARKREAD {channel} timestamp={time}")
        kept = [told(await ori.ask(f"MARKREAD {channel}"))[0][2] for channel in ("#a", "#b", "#c")]
        assert kept == [f"timestamp={LATE}", "*", f"timestamp={EARLY}"]


async def test_the_sessions_of_one_user_share_them(with_accounts: IRCd) -> None:
    port = with_accounts.port
    async with connected(port) as desk, connected(port) as phone, connected(port) as old:
        await log_in(desk)
        await desk.join("#a")
        await log_in(old, "message-tags")
        await desk.ask(f"MARKREAD #a timestamp={EARLY}")
        phone.send("PASS ori")
        phone.send(f"CAP REQ {CAP}\r\nNICK spark-ori\r\nUSER o 0 * :O\r\nCAP END")
        await phone.expect("JOIN", "#a")
        assert (await phone.receive()).params == ("#a", f"timestamp={EARLY}")
        await phone.sync()
        assert told(await desk.ask(f"MARKREAD #a timestamp={LATE}")) == [("MARKREAD", "#a", f"timestamp={LATE}")]
        assert told(await phone.sync()) == [("MARKREAD", "#a", f"timestamp={LATE}")]
        await phone.ask("JOIN #b")
        assert [each.verb for each in await desk.sync()] == ["JOIN", "MARKREAD", "353", "366"]
        await old.sync()
        assert "MARKREAD" not in [each.verb for each in old.seen]


async def test_those_of_an_account_outlive_the_server_and_those_of_a_guest_do_not(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, ByPassword()) as ircd,
        connected(ircd.port) as ori,
        registered(ircd.port, "spark-guest") as guest,
    ):
        await log_in(ori)
        for client in (ori, guest):
            await client.ask(f"MARKREAD #a timestamp={LATE}")
    file = tmp_path / "data" / "read-markers.json"
    assert json.loads(file.read_text(encoding="utf-8")) == {"schema": 1, "markers": {"ori": {"#a": LATE}}}
    assert file.stat().st_mode & 0o777 == 0o600
    async with (
        serving(tmp_path, ByPassword()) as ircd,
        connected(ircd.port) as ori,
        registered(ircd.port, "spark-guest") as guest,
    ):
        await log_in(ori)
        assert told(await ori.ask("MARKREAD #a")) == [("MARKREAD", "#a", f"timestamp={LATE}")]
        assert told(await guest.ask("MARKREAD #a")) == [("MARKREAD", "#a", "*")]


async def test_they_are_written_while_the_server_runs(tmp_path: Path) -> None:
    file = tmp_path / "data" / "read-markers.json"
    async with (
        serving(tmp_path, ByPassword(), limits={"multiline_timeout": 0.1}) as ircd,
        connected(ircd.port) as ori,
    ):
        await log_in(ori)
        await ori.ask(f"MARKREAD #a timestamp={LATE}")
        while not file.exists():
            await ori.sync()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"schema": 2, "markers": {}}',
        '{"schema": 1}',
        '{"schema": 1, "markers": {"ori": 5}}',
        '{"schema": 1, "markers": {"ori": {"#a": "soon"}}}',
    ],
)
async def test_a_file_that_makes_no_sense_is_put_aside(tmp_path: Path, text: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "read-markers.json").write_text(text, encoding="utf-8")
    async with serving(tmp_path, ByPassword()) as ircd, connected(ircd.port) as ori:
        await log_in(ori)
        assert told(await ori.ask("MARKREAD #a")) == [("MARKREAD", "#a", "*")]
    assert (data / "read-markers.unreadable").read_text(encoding="utf-8") == text
