"""weechat and irssi come in and talk: what one of them does, and what the other one shows then."""

import re
from pathlib import Path

import pytest

from culture.cli.local_servers import how_to_connect
from culture.server.ircd import IRCd
from tests.realclients.irssi import irssi, run
from tests.realclients.people import GENERAL, TEXT, Pair
from tests.realclients.weechat import CORE, weechat
from tests.support.servers import config_for

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clients" / "people.md"


@pytest.mark.requirement("A03", "A32", "B17", "B18")
async def test_two_people_chat_in_a_channel(pair: Pair) -> None:
    """B17, B18: both came in by JOIN; each reads what the other says, under the other's nick, until one leaves."""
    wendy, iris = pair
    wendy.type("hello from weechat", GENERAL)
    await iris.shows("#general: <@spark-wendy> hello from weechat$")
    await iris.has_on_screen("<@spark-wendy> hello from weechat")
    await iris.type("hello from irssi")
    await wendy.shows("^spark-iris hello from irssi$", GENERAL)
    await iris.type("/part #general off to lunch")
    await wendy.shows(r"spark-iris \(.*\) has left #general \(off to lunch\)", GENERAL)
    await iris.shows(r"spark-iris .* has left #general \[off to lunch\]")


@pytest.mark.requirement("A32")
async def test_accents_and_emoji_arrive_intact(pair: Pair) -> None:
    """In the channel, in private, in an action and in a farewell, both ways, in the log and on the screen."""
    wendy, iris = pair
    wendy.type(TEXT, GENERAL)
    await iris.shows(f"<@spark-wendy> {TEXT}$")
    await iris.has_on_screen(f"<@spark-wendy> {TEXT}")
    await iris.type(TEXT)
    await wendy.shows(f"^spark-iris {TEXT}$", GENERAL)
    wendy.type(f"/me {TEXT}", GENERAL)
    await iris.shows(rf"\* spark-wendy {TEXT}$")
    await iris.type(f"/msg spark-wendy {TEXT}")
    await wendy.shows(f"^spark-iris {TEXT}$", "spark-iris")
    wendy.type(TEXT, "spark-iris")
    await iris.shows(f"^<spark-wendy> {TEXT}$")
    await iris.type(f"/quit {TEXT}")
    await wendy.shows(rf"spark-iris \(.*\) has quit \(Quit: {TEXT}\)", GENERAL)


@pytest.mark.requirement("A32")
async def test_a_new_nick_is_seen_by_both(pair: Pair) -> None:
    """RFC 2812 §3.1.2, decision 1: a nick of the server's form is taken, any other and a taken one is refused."""
    wendy, iris = pair
    await iris.type("/nick spark-ada")
    await iris.shows("You're now known as spark-ada")
    await wendy.shows("spark-iris is now known as spark-ada", GENERAL)
    wendy.type("/nick bob")
    await wendy.shows("bob: Nicks here look like spark-name")
    wendy.type("/nick spark-ada")
    await wendy.shows("spark-ada: Nickname is already in use")
    wendy.type("/nick spark-zoe")
    await wendy.shows("You are now known as spark-zoe", GENERAL)
    await iris.shows("spark-wendy is now known as spark-zoe")
    await iris.type("still here")
    await wendy.shows("^spark-ada still here$", GENERAL)


@pytest.mark.requirement("A03", "A32")
async def test_the_command_that_up_prints_connects_each_client(ircd: IRCd, tmp_path: Path) -> None:
    """A03: the line is taken as printed; nothing is configured beside it."""
    lines = how_to_connect(config_for(tmp_path), [("127.0.0.1", ircd.port)]).splitlines()
    url = next(line.split("'")[1] for line in lines if "weechat " in line)
    arguments = next(line.split()[1:] for line in lines if "irssi " in line)
    nick = arguments[-1]
    async with weechat(tmp_path / "weechat", url) as person:
        await person.shows(f"{nick} .* has joined #general", GENERAL)
        person.type("/quit")
    async with irssi(tmp_path / "irssi", *arguments) as person:
        await person.shows(f"Welcome to the culture IRC Network {nick}!")


@pytest.mark.requirement("A03", "A32")
async def test_the_settings_that_the_page_for_people_gives_connect_each_client(ircd: IRCd, tmp_path: Path) -> None:
    """A03: docs/clients/people.md, typed as it stands there."""
    async with weechat(tmp_path / "weechat", server="culture") as person:
        before_4 = re.match("[0-3]\\.", await run("weechat-headless", "--version"))
        for line in _block("weechat", ircd.port):
            person.type(line.replace("-notls", "-nossl") if before_4 else line, CORE)
        await person.shows(r"spark-ori \(.*\) has joined #general", GENERAL)
        person.type("/quit")
    async with irssi(tmp_path / "irssi") as other:
        for line in _block("irssi", ircd.port):
            await other.type(line)
        await other.shows(r"spark-ori \[.*\] has joined #general")


def _block(language: str, port: int) -> list[str]:
    blocks = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1
    return [line.replace("6667", str(port)) for line in blocks[0].splitlines()]


async def test_a_nick_of_another_form_is_refused_with_the_reason(ircd: IRCd, tmp_path: Path) -> None:
    """Decision 1: both clients show how a nick looks here, and what docs/clients/people.md says then works."""
    port = str(ircd.port)
    async with weechat(tmp_path / "weechat", f"irc://bob@127.0.0.1:{port}/#general") as person:
        await person.shows("bob Nicks here look like spark-name")
        await person.shows("closing connection with server")
        person.type("/set irc.server.127.0.0.1.nicks spark-bob")
        person.type("/connect 127.0.0.1")
        await person.shows(r"spark-bob \(.*\) has joined #general", GENERAL)
    async with irssi(tmp_path / "irssi", "-c", "127.0.0.1", "-p", port, "-n", "ann") as other:
        await other.shows("ann Nicks here look like spark-name")
        await other.type("/set nick spark-ann")
        await other.shows("nick spark-ann")
        await other.type(f"/connect 127.0.0.1 {port}")
        await other.shows("Welcome to the culture IRC Network spark-ann!")
