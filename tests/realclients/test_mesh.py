"""One person at weechat, one at irssi, on two linked servers: they chat, are split, and have all of it in the end."""

from pathlib import Path

import pytest

from tests.realclients.irssi import irssi
from tests.realclients.people import GENERAL, TEXT
from tests.realclients.weechat import weechat
from tests.support.mesh import mesh
from tests.support.waiting import until

NAMES = SPARK, THOR = "spark.local", "thor.local"
"""Clients take a reason for a netsplit where both names have a dot."""
SAID = (f"{TEXT} before", "and back", "alone at weechat", "alone at irssi", "again together", "and there")


@pytest.mark.requirement("E04", "E06", "E15")
@pytest.mark.fault("D8")
async def test_two_people_on_two_servers_have_all_that_was_said(tmp_path: Path) -> None:
    async with mesh(tmp_path, names=NAMES, edges=((THOR, SPARK),)) as m:
        await m.linked()
        ports = {name: member.port for name, member in m.members.items()}
        address = ("-c", "127.0.0.1", "-p", str(ports[THOR]), "-n", "thor-iris")
        async with (
            weechat(tmp_path / "weechat", f"irc://spark-wendy@127.0.0.1:{ports[SPARK]}/{GENERAL}") as wendy,
            irssi(tmp_path / "irssi", *address) as iris,
        ):
            await wendy.shows("Channel #general: 1 nick", GENERAL)
            await iris.shows("Welcome to the culture IRC Network thor-iris")
            await iris.type(f"/join {GENERAL}")
            await iris.shows(r"#general: Total of 2 nicks \[1 ops")
            await wendy.shows(r"thor-iris \(.*\) has joined #general", GENERAL)
            wendy.type(SAID[0], GENERAL)
            await iris.shows(rf"<.?spark-wendy> {SAID[0]}$")
            await iris.type(SAID[1])
            await wendy.shows(f"thor-iris {SAID[1]}$", GENERAL)

            m.proxy(THOR, SPARK).cut()
            await wendy.shows(r"thor-iris \(.*\) has quit \(spark.local thor.local\)", GENERAL)
            await iris.shows(r"Netsplit thor.local <-> spark.local quits: .*spark-wendy")
            wendy.type(SAID[2], GENERAL)
            await iris.type(SAID[3])
            await until(lambda: len(m.history(SPARK)) == len(m.history(THOR)) == 3)

            m.proxy(THOR, SPARK).heal()
            await wendy.shows(r"thor-iris \(.*\) has (joined #general|come back)", GENERAL)
            await iris.shows(r"Netsplit over, joins: .*spark-wendy|spark-wendy .* has joined #general")
            wendy.type(SAID[4], GENERAL)
            await iris.shows(rf"<.?spark-wendy> {SAID[4]}$")
            await iris.type(SAID[5])
            await wendy.shows(f"thor-iris {SAID[5]}$", GENERAL)

            everything = {(who, text) for who, text in zip(["spark-wendy", "thor-iris"] * 3, SAID, strict=True)}
            await until(lambda: all(len(m.history(name)) == len(SAID) for name in m.members))
            for name in m.members:
                heard = [(each.source.partition("!")[0], each.text) for each in m.history(name)]
                assert len(heard) == len(SAID) and set(heard) == everything
            assert m.history(SPARK) == m.history(THOR)
            wendy.type("/quote history recent 10", GENERAL)
            await wendy.shows("--- #general: 6 messages ---")
            await iris.type("/quote history recent 10")
            await iris.shows("--- #general: 6 messages ---")
            when = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\]"
            for each in m.history(THOR):
                who = each.source.partition("!")[0]
                await wendy.shows(f"{when} <{who}> {each.text}$")
                await iris.shows(f"{when} <{who}> {each.text}$")
