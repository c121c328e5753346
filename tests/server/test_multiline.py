"""Messages of several lines: one message, taken or refused as one (IRCv3 draft/multiline)."""

import pytest

from culture.protocol.message import Message
from culture.protocol.vocabulary import Cap, Tag
from culture.server.events import Line, Said
from culture.server.ircd import IRCd
from tests.server.conftest import Crowd
from tests.support.client import Client, registered
from tests.support.servers import Serve

TAGS = "message-tags batch server-time echo-message labeled-response"
LONG = f"{TAGS} draft/multiline"
CONCAT = "draft/multiline-concat"


def send(client: Client, target: str, *lines: str, verb: str = "PRIVMSG", tags: str = "", name: str = "x") -> None:
    """A whole batch; a line that begins with + goes on where the one before it ended."""
    client.send(f"{tags}BATCH +{name} draft/multiline {target}")
    for line in lines:
        concat = f";{CONCAT}" if line.startswith("+") else ""
        client.send(f"@batch={name}{concat} {verb} {target} :{line.removeprefix('+')}")
    client.send(f"BATCH -{name}")


async def told(client: Client) -> list[tuple[str, ...]]:
    return [(each.verb, *each.params) for each in await client.sync()]


def failures(messages: list[Message]) -> list[tuple[str, ...]]:
    return [each.params[1:-1] for each in messages if each.verb == "FAIL"]


async def test_those_who_know_it_get_one_batch_with_one_id(crowd: Crowd) -> None:
    """draft/multiline, "Batch types": tags on the opening, the lines as the sender divided them."""
    ori = await crowd.join("spark-ori", "#a", caps=LONG)
    ada = await crowd.join("spark-ada", "#a", caps=LONG)
    await ori.sync()
    send(ori, "#a", "hello", "", "how is ", "+everyone?", tags="@label=one;+draft/reply=id ")
    echo, relay = await ori.sync(), await ada.sync()
    for opening, *lines, closing in (echo, relay):
        assert (opening.verb, opening.params[1:]) == ("BATCH", ("draft/multiline", "#a"))
        assert opening.source.startswith("spark-ori!")
        assert opening.tags["msgid"] and opening.tags["time"] and opening.tags["+draft/reply"] == "id"
        name = opening.params[0][1:]
        assert [(each.verb, *each.params) for each in lines] == [
            ("PRIVMSG", "#a", "hello"),
            ("PRIVMSG", "#a", ""),
            ("PRIVMSG", "#a", "how is "),
            ("PRIVMSG", "#a", "everyone?"),
        ]
        assert [dict(each.tags) for each in lines] == [{"batch": name}] * 3 + [{"batch": name, CONCAT: ""}]
        assert (closing.verb, closing.params) == ("BATCH", (f"-{name}",))
    assert (echo[0].tags["label"], relay[0].tags.get("label")) == ("one", None)
    assert echo[0].tags["msgid"] == relay[0].tags["msgid"]


@pytest.mark.fault("A18")
async def test_everybody_else_gets_ordinary_lines_in_order(crowd: Crowd) -> None:
    """A18; draft/multiline, "Fallback": no blank lines, the id on the first only."""
    ori = await crowd.join("spark-ori", "#a", caps=LONG)
    plain = await crowd.join("spark-plain", "#a")
    tags = await crowd.join("spark-tags", "#a", caps="message-tags server-time")
    half = await crowd.join("spark-half", "#a", caps="draft/multiline")
    await ori.sync()
    send(ori, "#a", "", "one", "two ", "+three", "", "four", tags="@+mood=calm ")
    for client in (plain, tags, half):
        await client.expect("PRIVMSG", "#a", "one")
        assert [each[2] for each in await told(client) if each[0] == "PRIVMSG"] == ["two ", "three", "four"]
    first, *rest = [each for each in tags.seen if each.verb == "PRIVMSG"]
    assert first.tags["msgid"]
    assert all("msgid" not in each.tags and CONCAT not in each.tags for each in rest)
    assert all(each.tags["+mood"] == "calm" and each.tags["time"] == first.tags["time"] for each in rest)


@pytest.mark.fault("A18")
async def test_every_line_fits_with_the_senders_name_and_nothing_is_lost(crowd: Crowd) -> None:
    """Decision 6, A18"""
    ori = await crowd.join("spark-ori", "#a", caps=LONG)
    plain = await crowd.join("spark-plain", "#a")
    ada = await crowd.join("spark-ada", "#a", caps=LONG)
    text = ("wörter und noch mehr " * 30).strip()
    while len(f"@batch=x PRIVMSG #a :{text}".encode()) > 500:
        text = text[:-1]
    send(ori, "#a", text, "end")
    got = ""
    while not got.endswith("end"):
        line = await plain.line()
        assert len(line) <= 512
        if b" PRIVMSG " in line:
            got += line.decode().partition(" :")[2].rstrip("\r\n")
    assert got == text + "end"
    await ada.expect("BATCH")
    while (each := await ada.receive()).verb == "PRIVMSG":
        assert len(bytes(each._replace(tags={}))) <= 512


@pytest.mark.fault("A17")
async def test_a_hundred_lines_pass_and_one_more_is_refused_as_a_whole(crowd: Crowd) -> None:
    """A17"""
    ori = await crowd.join("spark-ori", "#a", caps=LONG)
    ada = await crowd.join("spark-ada", "#a", caps=LONG)
    await ori.sync()
    send(ori, "#a", *["x"] * 100)
    assert failures(await ori.sync()) == []
    assert [each.verb for each in await ada.sync()].count("PRIVMSG") == 100
    send(ori, "#a", *["x"] * 101)
    assert failures(await ori.sync()) == [("MULTILINE_MAX_LINES", "100")]
    assert await ada.sync() == []


@pytest.mark.fault("A17")
async def test_4096_bytes_pass_and_one_more_is_refused_as_a_whole(crowd: Crowd) -> None:
    """A17: a line feed between two lines counts as one byte, a joined line has none."""
    ori = await crowd.join("spark-ori", "#a", caps=LONG)
    ada = await crowd.join("spark-ada", "#a", caps=LONG)
    await ori.sync()
    full = ["é" * 200] * 10  # 10 x 400 bytes and 9 line feeds
    send(ori, "#a", *full, "+" + "x" * 86, "+y")
    assert failures(await ori.sync()) == []
    heard = await ada.sync()
    assert [each.verb for each in heard].count("PRIVMSG") == 12
    send(ori, "#a", *full, "+" + "x" * 86, "y")
    assert failures(await ori.sync()) == [("MULTILINE_MAX_BYTES", "4096")]
    assert await ada.sync() == []


async def test_the_limits_are_settings_and_are_offered(serve: Serve) -> None:
    async with (
        serve(limits={"multiline_bytes": 10, "multiline_lines": 2}) as ircd,
        registered(ircd.port, "spark-ori", LONG) as ori,
    ):
        offer = " ".join(each.params[-1] for each in await ori.ask("CAP LS 302"))
        assert "draft/multiline=max-bytes=10,max-lines=2" in offer.split()
        send(ori, "spark-ori", "1", "2", "3")
        send(ori, "spark-ori", "1234567890", "+1")
        assert failures(await ori.sync()) == [("MULTILINE_MAX_LINES", "2"), ("MULTILINE_MAX_BYTES", "10")]


@pytest.mark.fault("A17")
async def test_a_batch_that_is_left_open_times_out(serve: Serve) -> None:
    """A17; client-initiated batch: what comes after that is ignored."""
    async with (
        serve(limits={"multiline_timeout": 0.1}) as ircd,
        registered(ircd.port, "spark-ori", LONG) as ori,
        registered(ircd.port, "spark-ada") as ada,
    ):
        ori.send("@label=late BATCH +x draft/multiline spark-ada")
        ori.send("@batch=x PRIVMSG spark-ada :one")
        failed = await ori.expect("FAIL", "BATCH", "TIMEOUT", "x")
        assert failed.tags["label"] == "late"
        ori.send("@batch=x PRIVMSG spark-ada :two")
        ori.send("BATCH -x")
        assert await ori.sync() == []
        assert await ada.sync() == []
        send(ori, "spark-ada", "again")
        await ada.expect("PRIVMSG", "spark-ada", "again")


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (["@batch=x PRIVMSG #a :one", "@batch=x PRIVMSG #b :two"], ("MULTILINE_INVALID_TARGET", "#a", "#b")),
        (["@batch=x PRIVMSG #a :one", "@batch=x NOTICE #a :two"], ("MULTILINE_INVALID",)),
        (["@batch=x PRIVMSG #a :one", f"@batch=x;{CONCAT} PRIVMSG #a :"], ("MULTILINE_INVALID",)),
        (["@batch=x PRIVMSG #a :one", "@batch=y PRIVMSG #a :two"], ("MULTILINE_INVALID",)),
        (["@batch=x PRIVMSG #a :one", "@batch=x JOIN #b"], ("MULTILINE_INVALID",)),
        (["@batch=x PRIVMSG #a :one", "@batch=x BATCH +y draft/multiline #a"], ("MULTILINE_INVALID",)),
        (["@batch=x PRIVMSG #a :one", "@batch=x PRIVMSG #a"], ("MULTILINE_INVALID",)),
        (["@batch=x PRIVMSG #a :one", "@batch=x PRIVMSG #a :zero\0byte"], ("MULTILINE_INVALID",)),
        (["@batch=x PRIVMSG #a :", "@batch=x PRIVMSG #a :"], ("MULTILINE_INVALID",)),
        ([], ("MULTILINE_INVALID",)),
    ],
)
async def test_what_is_wrong_with_one_line_refuses_them_all(crowd: Crowd, lines: list[str], code: tuple) -> None:
    """draft/multiline, "Errors": told once, under the label of the opening."""
    ori = await crowd.join("spark-ori", "#a", caps=LONG)
    ada = await crowd.join("spark-ada", "#a")
    await ori.sync()
    for line in ["@label=one BATCH +x draft/multiline #a", *lines]:
        ori.send(line)
    if code != ("MULTILINE_INVALID",) or any(line.endswith("one") for line in lines):
        ori.send("@batch=x PRIVMSG #a :rest")
    ori.send("BATCH -x")
    [failed] = await ori.sync()
    assert failures([failed]) == [code]
    assert failed.tags["label"] == "one"
    assert await ada.sync() == []


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        (b"caf\xe9", [("PRIVMSG", "INVALID_UTF8"), ("BATCH", "MULTILINE_INVALID")]),
        (b"x" * 600, [("BATCH", "MULTILINE_INVALID")]),
    ],
)
async def test_a_line_that_cannot_be_read_refuses_the_rest(crowd: Crowd, line: bytes, answers: list) -> None:
    """What would be a hole in the message is no message."""
    ori = await crowd.join("spark-ori", "#a", caps=LONG)
    ada = await crowd.join("spark-ada", "#a")
    await ori.sync()
    ori.send("BATCH +x draft/multiline #a")
    ori.send("@batch=x PRIVMSG #a :one")
    ori.send_raw(b"@batch=x PRIVMSG #a :" + line + b"\r\n")
    ori.send("@batch=x PRIVMSG #a :three")
    ori.send("BATCH -x")
    assert [each.params[:2] for each in await ori.sync() if each.verb == "FAIL"] == answers
    assert await ada.sync() == []


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("BATCH +x netsplit #a", ("UNKNOWN_TYPE", "x", "netsplit")),
        ("BATCH +x", ("UNKNOWN_TYPE", "x", "*")),
        ("BATCH +x_y draft/multiline #a", ("INVALID_REFTAG", "+x_y")),
        ("BATCH + draft/multiline #a", ("INVALID_REFTAG", "+")),
        ("BATCH x draft/multiline #a", ("INVALID_REFTAG", "x")),
        ("BATCH :", ("INVALID_REFTAG", "*")),
        ("BATCH +x draft/multiline", ("MULTILINE_INVALID",)),
        ("BATCH +x draft/multiline :#a b", ("MULTILINE_INVALID",)),
        ("BATCH -x", ("MULTILINE_INVALID",)),
        ("@batch=x PRIVMSG #a :nothing is open", ("MULTILINE_INVALID",)),
    ],
)
async def test_a_batch_that_cannot_be_opened_is_told(crowd: Crowd, line: str, code: tuple) -> None:
    """Client-initiated batch, "Errors": its lines are ignored."""
    ori = await crowd.join("spark-ori", "#a", caps=LONG)
    ada = await crowd.join("spark-ada", "#a")
    await ori.sync()
    tags, _, rest = line.partition(" ") if line.startswith("@") else ("", "", line)
    [failed] = await ori.ask(f"{tags or '@'}{';' if tags else ''}label=l {rest}")
    assert failures([failed]) == [code]
    assert failed.tags["label"] == "l"
    if code[0] != "MULTILINE_INVALID" or "BATCH +" in line:
        assert await ori.ask("@batch=x PRIVMSG #a :ignored") == []
    assert await ada.sync() == []


async def test_it_takes_the_capabilities(crowd: Crowd) -> None:
    for number, caps in enumerate((TAGS, "message-tags draft/multiline", "")):
        ori = await crowd.join(f"spark-ori{number}", caps=caps)
        send(ori, ori.nick, "one", "two")
        assert failures(await ori.sync()) == [("UNKNOWN_TYPE", "x", "draft/multiline")]


async def test_a_second_batch_refuses_the_one_that_is_open(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#a", caps=LONG)
    ada = await crowd.join("spark-ada", "#a")
    ori.send("BATCH +x draft/multiline #a")
    ori.send("@batch=x PRIVMSG #a :lost")
    send(ori, "#a", "two", "three", name="y")
    assert failures(await ori.sync()) == [("MULTILINE_INVALID",)]
    assert [each[2] for each in await told(ada) if each[0] == "PRIVMSG"] == ["two", "three"]


async def test_other_commands_go_on_meanwhile(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#a", caps=LONG)
    ada = await crowd.join("spark-ada", "#a")
    await ori.sync()
    ori.send("BATCH +x draft/multiline #a")
    ori.send("@batch=x PRIVMSG #a :later")
    assert [each.verb for each in await ori.ask("PRIVMSG #a :at once")] == ["PRIVMSG"]
    assert [each[2] for each in await told(ada)] == ["at once"]
    ori.send("BATCH -x")
    await ada.expect("PRIVMSG", "#a", "later")


async def test_a_target_that_does_not_listen_is_told_under_the_label(crowd: Crowd) -> None:
    ada = await crowd.join("spark-ada", "#closed")
    ori = await crowd.join("spark-ori", caps=LONG)
    for target, code in (("#closed", "404"), ("#nowhere", "403"), ("spark-nobody", "401")):
        send(ori, target, "one", "two", tags="@label=7 ")
        [refusal] = await ori.sync()
        assert (refusal.verb, refusal.tags["label"]) == (code, "7")
    send(ori, "#closed", "one", "two", verb="NOTICE", tags="@label=8 ")
    assert [(each.verb, each.tags["label"]) for each in await ori.sync()] == [("ACK", "8")]
    assert await ada.sync() == []


async def test_without_echo_the_label_is_acknowledged_when_it_is_said(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", caps="batch labeled-response draft/multiline")
    ada = await crowd.join("spark-ada")
    ori.send("@label=7 BATCH +x draft/multiline spark-ada")
    ori.send("@batch=x PRIVMSG spark-ada :one")
    assert await ori.sync() == []
    [ack] = await ori.ask("BATCH -x")
    assert (ack.verb, ack.tags["label"]) == ("ACK", "7")
    assert await told(ada) == [("PRIVMSG", "spark-ada", "one")]


async def test_with_other_answers_the_batch_is_one_of_several(crowd: Crowd) -> None:
    """IRCv3 labeled-response: a batch in the batch."""
    ori = await crowd.join("spark-ori", caps=LONG)
    ada = await crowd.join("spark-ada")
    await ada.ask("AWAY :tea")
    send(ori, "spark-ada", "one", "two", tags="@label=7 ")
    outer, away, inner, *lines, closing, end = await ori.sync()
    assert (outer.params[1], outer.tags["label"]) == ("labeled-response", "7")
    name = outer.params[0][1:]
    assert (away.verb, away.tags["batch"], inner.tags["batch"]) == ("301", name, name)
    assert {each.tags["batch"] for each in lines} == {inner.params[0][1:]}
    assert (closing.params[0][1:], end.params[0][1:]) == (inner.params[0][1:], name)


async def test_whoever_is_called_anywhere_in_it_is_told_once(crowd: Crowd) -> None:
    """Decision 5, over the whole text: a fence may span lines."""
    ori = await crowd.join("spark-ori", "#a", caps=LONG)
    plain = await crowd.join("spark-plain", "#a")
    agent = await crowd.join("spark-agent", "#a", caps=f"message-tags {Cap.MENTIONS}")
    quoted = await crowd.join("spark-quoted", "#a")
    send(ori, "#a", "look", "spark-plain: and @spark-", "+agent", "```", "@spark-quoted", "```")
    for client in (plain, agent, quoted):
        await client.expect("PRIVMSG", "#a", "look")
    [notice] = [each for each in await plain.sync() if each.verb == "NOTICE"]
    assert "look spark-plain: and" in notice.params[1]
    assert [each.verb for each in await quoted.sync()].count("NOTICE") == 0
    await agent.sync()
    lines = [each for each in agent.seen if each.verb == "PRIVMSG"]
    assert [each.tags.get(Tag.MENTIONS) for each in lines] == ["spark-plain,spark-agent"] + [None] * (len(lines) - 1)


async def test_a_channel_without_ctcp_has_none_in_any_line(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#a", caps=LONG)
    ada = await crowd.join("spark-ada", "#a")
    await ori.ask("MODE #a +C")
    await ada.sync()
    send(ori, "#a", "hi", "+\x01VERSION\x01")
    assert [each.verb for each in await ori.sync()] == ["404"]
    assert await ada.sync() == []


async def test_long_tags_come_once(crowd: Crowd) -> None:
    """Else a hundred lines with four thousand bytes of tags each would fill everybody's queue."""
    ori = await crowd.join("spark-ori", "#a", caps=LONG)
    ada = await crowd.join("spark-ada", "#a", caps="message-tags server-time")
    send(ori, "#a", *["x"] * 100, tags=f"@+t={'v' * 4000} ")
    first = await ada.expect("PRIVMSG")
    assert len(first.tags["+t"]) == 4000
    rest = await ada.sync()
    assert len(rest) == 99
    assert all("+t" not in each.tags and each.tags["time"] == first.tags["time"] for each in rest)


async def test_only_the_rank_meant_hears_it(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#a", caps=LONG)
    ada = await crowd.join("spark-ada", "#a", caps=LONG)
    send(ori, "@#a", "for", "operators")
    heard = await ori.sync()
    assert [each.params for each in heard if each.verb == "PRIVMSG"] == [("@#a", "for"), ("@#a", "operators")]
    assert await ada.sync() == []


async def test_it_is_one_event_with_the_joined_text(ircd: IRCd, crowd: Crowd) -> None:
    said: list[Said] = []
    ircd.parts.router.subscribe(said.append, Said)
    ori = await crowd.join("spark-ori", "#a", caps=LONG)
    send(ori, "#a", "one", "", "two ", "+three")
    await ori.sync()
    [event] = said
    assert event.text == "one\n\ntwo three"
    assert event.lines == (Line("one", False), Line("", False), Line("two ", False), Line("three", True))


async def test_a_hundred_lines_cost_about_ten_commands(serve: Serve) -> None:
    """Flood control counts a message of several lines by its size, not by its lines."""
    slow = {"loopback": {"burst": 20, "rate": 0.01}}
    async with serve(flood=slow) as ircd, registered(ircd.port, "spark-ori", LONG) as ori:
        send(ori, "spark-ori", *["x"] * 100)
        await ori.expect("BATCH", where=lambda each: each.params[0].startswith("-"))
