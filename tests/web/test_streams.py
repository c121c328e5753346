"""Pages that stay open: what they are told, and how they come back."""

from pathlib import Path

from culture.config.model import Listen
from culture.server.ircd import IRCd
from culture.web.database import open_database
from culture.web.event_stream import EventStream
from culture.web.sessions import BrowserSessions
from tests.support.client import Client, connected
from tests.support.people import PASSWORD, accounts_of, authenticate, come_in, plain
from tests.support.ports import reserved
from tests.support.servers import serving
from tests.support.waiting import until
from tests.support.web import Site, settings_for, site_for, texts
from tests.web.test_rooms import client_of, said


async def test_a_page_left_open_through_a_restart_of_the_server_recovers_by_itself(tmp_path: Path) -> None:
    accounts_of(tmp_path, "ori", "ada")
    with reserved() as port:
        listen = (Listen(port=port),)
        async with serving(tmp_path, listen=listen) as ircd, site_for(settings_for(tmp_path, port)) as site:
            ori = await site.browser().come_in("ori")
            await said(ori, "#general", "before")
            await ircd.stop("restart")
            async with ori.listening() as news:

                def states() -> list[str]:
                    return [each["condition"] for kind, each in news if kind == "state"]

                await until(lambda: "lost" in states())
                assert (await said(ori, "#general", "lost?")).headers["x-refused"] == "1"
                assert texts((await ori.get("/rooms/%23general")).text) == ["before"]
                async with serving(tmp_path, listen=listen) as again:
                    async with client_of(again, "ada") as ada:
                        ada.send("PRIVMSG #general :while you were gone")
                        await ada.sync()
                    await until(lambda: states()[-1] == "connected")
                    await until(
                        lambda: [each for kind, each in news if kind == "message" and "while you" in each["html"]]
                    )
                    await said(ori, "#general", "after")
                    assert texts((await ori.get("/rooms/%23general")).text) == [
                        "before",
                        "while you were gone",
                        "after",
                    ]


async def test_a_tab_that_was_gone_for_a_moment_hears_what_it_missed(site: Site, ircd: IRCd) -> None:
    ori = await site.browser().come_in("ori")
    async with ori.listening() as news:
        await until(lambda: [kind for kind, _ in news if kind == "here"])
    async with client_of(ircd, "ada") as ada:
        ada.send("PRIVMSG #general :one\r\nPRIVMSG #general :two")
        await ada.sync()
    async with ori.listening(ori.last) as news:
        await until(lambda: len([each for kind, each in news if kind == "message"]) == 2)
    async with ori.listening("0badf00d.7") as news:
        await until(lambda: [kind for kind, _ in news if kind == "resync"])


async def test_a_revoked_session_ends_its_pages(site: Site) -> None:
    ori = await site.browser().come_in("ori")
    async with ori.listening() as news:
        with open_database(site.settings.folder) as database:
            assert BrowserSessions(database).revoke_of("ori") == 1
        await until(lambda: [kind for kind, _ in news if kind == "ended"])
    assert (await ori.client.get("/whoami", headers={"HX-Request": "true"})).status_code == 401


async def test_facts_are_told_to_every_page(site: Site, ircd: IRCd) -> None:
    ori = await site.browser().come_in("ori")
    async with ori.listening() as news, connected(ircd.port) as agent:
        await _speaks_of_itself(agent)
        await until(lambda: ("facts", {"kinds": ["state"]}) in news)


async def _speaks_of_itself(agent: Client) -> None:
    agent.send("CAP REQ :message-tags")
    await authenticate(agent, "PLAIN", plain("claude", PASSWORD))
    await come_in(agent, "spark-claude")
    agent.send('@+agentirc.dev/fact={"state":"working"} LEDGER PUT state now')
    await agent.expect("LEDGEREND")


async def test_a_tab_that_does_not_read_is_cut_off() -> None:
    events = EventStream()
    stream = events.listen("", 60)
    assert (await anext(stream)) is not None
    for number in range(600):
        events.publish("message", {"number": number})
    assert events.listeners == 0
    assert len([each async for each in stream]) == 500
