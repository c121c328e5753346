"""weechat and irssi read what was said before: by asking, and when they come in."""

from pathlib import Path

import pytest

from culture.server.ircd import IRCd
from tests.realclients.irssi import irssi
from tests.realclients.people import GENERAL, TEXT, Pair
from tests.realclients.weechat import weechat
from tests.support.client import registered

WHEN = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\]"


@pytest.mark.requirement("D15", "D17")
async def test_what_was_said_is_read_as_people_type_it(pair: Pair) -> None:
    """In lower case and without a channel: that is the one they last spoke in."""
    wendy, iris = pair
    wendy.type(f"{TEXT} from weechat", GENERAL)
    await iris.shows("from weechat$")
    await iris.type("/me waves")
    await wendy.shows(r"spark-iris waves$", GENERAL)
    wendy.type("/quote history recent 10", GENERAL)
    await wendy.shows("--- #general: 2 messages ---")
    await wendy.shows(f"{WHEN} <spark-wendy> {TEXT} from weechat$")
    await wendy.shows(rf"{WHEN} \* spark-iris waves$")
    await iris.type("/quote history recent 10")
    await iris.shows("--- #general: 2 messages ---")
    await iris.shows(f"{WHEN} <spark-wendy> {TEXT} from weechat$")
    await iris.shows(rf"{WHEN} \* spark-iris waves$")


async def speak(ircd: IRCd) -> None:
    """Somebody says three things in #general, and goes."""
    async with registered(ircd.port, "spark-ori") as ori:
        await ori.join(GENERAL)
        for text in ("first", f"second {TEXT}", "\x01ACTION thinks\x01"):
            await ori.ask(f"PRIVMSG {GENERAL} :{text}")
        ori.send("QUIT")
        await ori.ended()


async def test_weechat_shows_what_was_said_before_it_came(ircd: IRCd, tmp_path: Path) -> None:
    await speak(ircd)
    async with weechat(tmp_path / "weechat", f"irc://spark-wendy@127.0.0.1:{ircd.port}/#general") as wendy:
        await wendy.shows("Channel #general: 1 nick", GENERAL)
        await wendy.shows("^spark-ori first$", GENERAL)
        await wendy.shows(f"^spark-ori second {TEXT}$", GENERAL)
        await wendy.shows("spark-ori thinks$", GENERAL)


async def test_irssi_shows_what_was_said_before_it_came(ircd: IRCd, tmp_path: Path) -> None:
    await speak(ircd)
    address = ("-c", "127.0.0.1", "-p", str(ircd.port), "-n", "spark-iris")
    async with irssi(tmp_path / "irssi", *address) as iris:
        await iris.shows("Welcome to the culture IRC Network spark-iris")
        await iris.type("/join #general")
        await iris.shows(r"--- #general: 3 earlier messages, from \d{4}-\d\d-\d\d \d\d:\d\d:\d\d to .* UTC ---")
        await iris.shows(r"<.?spark-ori> first$")
        await iris.shows(rf"<.?spark-ori> second {TEXT}$")
        await iris.shows(r"\* spark-ori thinks$")
        await iris.shows("--- #general: end of the earlier messages ---")
        await iris.has_on_screen("spark-ori> first")
