"""Compacting and clearing the context of the real Claude Code: by a person's word, and by its own."""

import asyncio
from pathlib import Path

import pytest

from culture.clients.shared.daemon import AgentDaemon
from culture.server.ircd import IRCd
from tests.clients.claude.rooms import GENERAL, NICK, SKILL, working
from tests.clients.shared.test_daemon import answered
from tests.support.client import Client
from tests.support.model import Model
from tests.support.waiting import until

# The journal keeps the beginning of a message, which shall be without a script.
LONG = "that I gave you when we met in the library on the other side of the river, please"


async def tell(word: str, way: str, ori: Client) -> None:
    """Have it done: a person says the word, or the agent does it."""
    if way == "by a person":
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} {word}")
        await ori.expect("NOTICE", "spark-ori", where=lambda each: "as soon as I am free" in each.params[1])
    else:
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} mind your context [[bash {SKILL} {word}]] [[say I shall]]")
        assert await answered(ori, GENERAL) == "I shall"


async def ask_for_the_marmot(ori: Client) -> None:
    ori.send(f"PRIVMSG {GENERAL} :@{NICK} remember the marmot {LONG} [[say I do]]")
    assert await answered(ori, GENERAL) == "I do"


async def ask_what_it_was(ori: Client, model: Model) -> str:
    """Ask for something else; all that the model is told then."""
    ori.send(f"PRIVMSG {GENERAL} :@{NICK} what was it? [[say what indeed]]")
    assert await answered(ori, GENERAL) == "what indeed"
    return model.journal.requests[-1].everything


WAYS = pytest.mark.parametrize("way", ["by a person", "by itself"])


@WAYS
@pytest.mark.fault("E35")
@pytest.mark.requirement("H13", "L10")
async def test_compacting_keeps_the_session_and_restates_the_task(
    ircd: IRCd, home: Path, model: Model, way: str
) -> None:
    async with working(ircd, home) as (daemon, ori):
        await ask_for_the_marmot(ori)
        session = daemon.notes.session
        await tell("compact", way, ori)
        await model.journal.arrival("<summary>")
        everything = await ask_what_it_was(ori, model)
        assert daemon.notes.session == session is not None
    assert "What was said before." in everything
    assert f"(your context was shortened: you are {NICK} on IRC, and answer where you are asked." in everything
    assert "[[say I do]]" not in everything


@WAYS
@pytest.mark.requirement("H14", "L10")
async def test_clearing_begins_a_new_session_and_leaves_irc_alone(
    ircd: IRCd, home: Path, model: Model, way: str
) -> None:
    async with working(ircd, home) as (daemon, ori):
        await ask_for_the_marmot(ori)
        session = daemon.notes.session
        await tell("clear", way, ori)
        await until(lambda: daemon.notes.session != session)
        assert "marmot" not in await ask_what_it_was(ori, model)
        assert daemon.notes.session not in (None, session)
        assert {GENERAL, "#alerts"} <= set(daemon.transport.channels)
        assert not [each for each in ori.seen if each.verb in ("PART", "QUIT")]


async def filled(daemon: AgentDaemon, ori: Client, model: Model, book: Path) -> None:
    """The agent's context grows, until there is just no more room for what it holds."""
    text = "All work and no play. " * 1000
    await asyncio.to_thread(book.write_text, text)
    ori.send(f"PRIVMSG {NICK} :recite the book {LONG} [[recite {book}]]")
    await until(lambda: daemon.inbox.journal(1) != [] and not daemon.work.busy)
    model.window = len(model.journal.requests[-1].everything.encode()) + len(text) // 2


@pytest.mark.fault("E36")
async def test_when_it_is_full_a_new_session_is_told_what_the_journal_knows(
    ircd: IRCd, home: Path, model: Model, tmp_path: Path
) -> None:
    async with working(ircd, home) as (daemon, ori):
        await filled(daemon, ori, model, tmp_path / "book")
        session = daemon.notes.session
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} go on with the book {LONG} [[say on it]]")
        assert await answered(ori, GENERAL) == "on it"
        await until(lambda: not daemon.work.busy)
        assert daemon.notes.session not in (None, session)
        assert daemon.inbox.counts() == (0, 0)
        assert not [each for each in ori.seen if each.verb == "NOTICE" and each.params[0] == GENERAL]
    last = model.journal.requests[-1]
    assert "(your last session was full, and this is a new one; what you were last given:" in last.prompt
    # What was said in private is in no prompt of a channel.
    assert "in spark-ori: (private)" in last.prompt and "recite the book" not in last.prompt
    assert "shortened" not in last.prompt
    assert "All work and no play" not in last.everything


@pytest.mark.fault("E36")
async def test_when_it_is_too_full_to_be_shortened_a_new_session_begins(
    ircd: IRCd, home: Path, model: Model, tmp_path: Path
) -> None:
    async with working(ircd, home) as (daemon, ori):
        await filled(daemon, ori, model, tmp_path / "book")
        session = daemon.notes.session
        await tell("compact", "by a person", ori)
        everything = await ask_what_it_was(ori, model)
        assert daemon.notes.session not in (None, session)
    assert "All work and no play" not in everything
    assert "(your last session was full, and this is a new one" in everything
    assert "(your context was shortened" not in everything


async def test_what_could_not_be_compacted_is_not_said_to_be(
    ircd: IRCd, home: Path, model: Model, tmp_path: Path
) -> None:
    async with working(ircd, home) as (daemon, ori):
        await filled(daemon, ori, model, tmp_path / "book")
        session = daemon.notes.session
        await tell("compact", "by a person", ori)
        await until(lambda: not daemon.work.busy)
        model.window = None
        everything = await ask_what_it_was(ori, model)
        assert daemon.notes.session == session
    assert "(your /compact failed: " in everything
    assert "(your context was shortened" not in everything
