"""Figures for a monitoring system, over plain HTTP."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from culture.config.services import MetricsConfig as Settings
from culture.server.errors import StartError
from culture.server.ircd import IRCd
from culture.server.metrics import Metrics
from tests.support.client import registered
from tests.support.servers import config_for, serving
from tests.support.waiting import PATIENCE


@pytest.fixture
async def ircd(tmp_path: Path) -> AsyncIterator[IRCd]:
    async with serving(tmp_path, metrics=Settings(listen="127.0.0.1:0")) as running:
        yield running


async def fetch(ircd: IRCd, request: str) -> tuple[str, str]:
    """The status line and the page."""
    reader, writer = await asyncio.open_connection("127.0.0.1", ircd.scraping.port)
    writer.write(request.encode())
    async with asyncio.timeout(PATIENCE):
        answer = (await reader.read()).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    return head.partition("\r\n")[0], body


async def test_what_the_server_does_is_counted(ircd: IRCd) -> None:
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join("#room")
        await ori.ask("PRIVMSG #room :hello")
        status, page = await fetch(ircd, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9464\r\n\r\n")
    assert status == "HTTP/1.1 200 OK"
    for row in (
        "culture_users 1",
        "culture_sessions 1",
        "culture_channels 2",
        "culture_servers 1",
        'culture_messages_total{verb="PRIVMSG"} 1',
        'culture_commands_total{verb="PRIVMSG"} 1',
        'culture_events_total{kind="joined"} 1',
        "culture_history_lost_total 0",
        "# TYPE culture_users gauge",
        "# TYPE culture_messages_total counter",
    ):
        assert row in page.splitlines(), row
    received = next(row for row in page.splitlines() if row.startswith("culture_received_bytes_total "))
    assert int(received.split()[1]) > 50
    assert "spark-ori" not in page and "#room" not in page and "hello" not in page


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 404 Not Found"),
        ("POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 405 Method Not Allowed"),
        ("GET /metrics HTTP/1.1\r\nHost: evil.example.org\r\n\r\n", "HTTP/1.1 421 Misdirected Request"),
        ("GET /metrics HTTP/1.1\r\nX: " + "x" * 20_000 + "\r\n\r\n", ""),
        ("\r\n\r\n", "HTTP/1.1 405 Method Not Allowed"),
    ],
)
async def test_there_is_one_page(ircd: IRCd, request_: str, status: str) -> None:
    assert (await fetch(ircd, request_))[0] == status
    async with registered(ircd.port, "spark-ori") as ori:
        assert await ori.sync() == []


async def test_without_the_setting_nobody_listens(tmp_path: Path) -> None:
    async with serving(tmp_path) as ircd:
        with pytest.raises(AssertionError):
            _ = ircd.scraping.port


async def test_a_port_that_is_taken_is_said(tmp_path: Path, ircd: IRCd) -> None:
    taken = Settings(listen=f"127.0.0.1:{ircd.scraping.port}")
    with pytest.raises(StartError, match="for metrics"):
        async with serving(tmp_path / "two", metrics=taken):
            pass


def test_the_figures_stay_on_the_machine(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="trusted_network"):
        config_for(tmp_path, metrics=Settings(listen="10.0.0.1:9464"))
    assert config_for(tmp_path, metrics=Settings(listen="10.0.0.1:9464"), trusted_network=True).metrics.listen


def test_an_address_looks_like_one() -> None:
    with pytest.raises(ValueError, match=r"127\.0\.0\.1:9464"):
        Settings(listen="9464")


def test_a_figure_that_fails_is_left_out() -> None:
    metrics = Metrics()
    metrics.gauge("bad", "Fails.", lambda: 1 / 0)
    metrics.gauge("good", "Works.", lambda: [({"of": 'a "b" \\ c\nd'}, 1.5)])
    assert metrics.text() == '# HELP good Works.\n# TYPE good gauge\ngood{of="a \\"b\\" \\\\ c\\nd"} 1.5\n'
