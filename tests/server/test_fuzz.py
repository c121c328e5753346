"""Garbage of every kind: no crash, no traceback, nobody else notices."""

import logging

import pytest

from culture.config.model import Operator
from tests.support.client import registered
from tests.support.fuzz import SAMPLES, garbage, login, noise, resident_kib, throw, variants
from tests.support.servers import Serve
from tests.support.verbs import every_verb

VERBS = list(every_verb())
SEEDS = 1000
BYTES = 10_000
KIB_OF_GROWTH = 2 * 1024  # 800 connections that left all they sent would take 7,812


def test_every_verb_has_a_sample() -> None:
    assert SAMPLES.keys() == set(VERBS)


@pytest.mark.fault("A14")
@pytest.mark.parametrize("operator", [False, True], ids=["user", "operator"])
async def test_each_parameter_missing_doubled_empty_and_huge(
    serve: Serve, caplog: pytest.LogCaptureFixture, operator: bool
) -> None:
    """A14, of every verb; the connection is still there afterwards, and so is everybody else."""
    async with (
        serve(operators=(Operator(name="root", password="very secret"),)) as ircd,
        registered(ircd.port, "spark-witness") as witness,
        registered(ircd.port, "spark-prey") as prey,
    ):
        await prey.join("#fuzz")
        for verb in VERBS:
            for line in variants(SAMPLES[verb]):
                async with registered(ircd.port, "spark-fuzzer") as fuzzer:
                    if operator:
                        await fuzzer.ask("OPER root :very secret")
                    await fuzzer.join("#fuzz")
                    try:
                        await fuzzer.ask(line)
                    except (EOFError, ConnectionResetError):
                        assert verb == "QUIT", line
                    fuzzer.send("QUIT")
                    await fuzzer.ended()
            await prey.join("#fuzz")
            await witness.sync()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.fault("A14")
async def test_the_same_before_registration(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    """A14"""
    async with serve() as ircd, registered(ircd.port, "spark-witness") as witness:
        for verb in VERBS:
            for line in variants(SAMPLES[verb]):
                await throw(ircd.port, line.encode() + b"\r\n")
            await witness.sync()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.fault("A13")
@pytest.mark.timeout(120)
async def test_random_bytes_leave_no_trace(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    """A13: 10 MB in 1,000 connections, every other one registered."""
    async with serve() as ircd, registered(ircd.port, "spark-witness") as witness:
        for seed in range(SEEDS):
            greeting = login(f"spark-fuzz{seed}", "JOIN #fuzz") if seed % 2 else b""
            await throw(ircd.port, greeting + noise(seed, BYTES))
            if seed == SEEDS // 5:
                before = resident_kib()
            if seed % 100 == 0:
                await witness.sync()
        await witness.sync()
        assert resident_kib() - before < KIB_OF_GROWTH
        assert len(ircd.parts.sessions) == 1
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.fault("A14")
async def test_lines_that_almost_make_sense(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    """A14, with parameters taken at random; every answer is a line that fits."""
    async with serve() as ircd, registered(ircd.port, "spark-witness") as witness:
        for seed in range(100):
            said = await throw(ircd.port, login("spark-fuzz", "JOIN #fuzz") + garbage(seed, VERBS, 50))
            for line in said.split(b"\r\n"):
                assert len(line) <= 510 or line.startswith(b"@"), line
                line.decode()
        await witness.sync()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
