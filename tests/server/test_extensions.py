"""What is ours on the wire: new names only, in our namespace, each with its page (protocol/extensions)."""

import re
from pathlib import Path

import pytest

from culture.protocol import message
from culture.protocol.vocabulary import VENDOR
from tests.server.conftest import Crowd
from tests.support.verbs import every_verb

PAGES = [page.read_text(encoding="utf-8") for page in (Path(message.__file__).parent / "extensions").glob("*.md")]


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


RFC_2812 = words(
    "ADMIN AWAY CONNECT DIE ERROR INFO INVITE ISON JOIN KICK KILL LINKS LIST LUSERS MODE MOTD NAMES NICK NOTICE OPER "
    "PART PASS PING PONG PRIVMSG QUIT REHASH RESTART SERVER SERVICE SERVLIST SQUERY SQUIT STATS SUMMON TIME TOPIC "
    "TRACE USER USERHOST USERS VERSION WALLOPS WHO WHOIS WHOWAS"
)
IRCV3 = words(
    "ACCOUNT ACK AUTHENTICATE BATCH CAP CHATHISTORY CHGHOST FAIL MARKREAD METADATA MONITOR NOTE REDACT REGISTER RENAME "
    "SETNAME TAGMSG VERIFY WARN WEBIRC"
)
CUSTOMARY = frozenset({"HELP", "HELPOP"})
STANDARD = RFC_2812 | IRCV3 | CUSTOMARY
STANDARD_CAPS = words(
    "account-notify account-tag away-notify batch cap-notify chghost echo-message extended-join extended-monitor "
    "invite-notify labeled-response message-tags monitor multi-prefix sasl server-time setname standard-replies sts "
    "userhost-in-names"
)
STANDARD_TAGS = frozenset({"account", "batch", "bot", "label", "msgid", "time"})


def commands(page: str) -> set[str]:
    """The verbs that a page brings."""
    named = page.partition("\nCommands:")[2].partition("\n")[0].partition(";")[0]
    return {found[1] for each in named.split(",") if (found := re.match(r" *([A-Z]{3,})\b", each))}


def examples(page: str) -> set[str]:
    """The verbs that clients, or servers that dial, send on a page."""
    sent = page.partition("\n  Client → Server:\n")[2].partition("\n  Server → Client:\n")[0]
    return {message.Message.parse(line.strip()).verb for line in sent.splitlines() if line.strip()}


def is_ours(name: str) -> bool:
    """A name of IRCv3 has no vendor in front, or calls itself a draft."""
    return "/" in name and not name.startswith("draft/")


@pytest.mark.requirement("A19")
def test_a_verb_of_ours_is_new_and_has_a_page_with_an_example() -> None:
    """A19: no page takes a verb that IRC has, and the server knows no verb beside IRC's and those of the pages."""
    brought = {verb for page in PAGES for verb in commands(page)}
    assert brought & STANDARD == set()
    assert set(every_verb()) - STANDARD <= brought
    assert [page.splitlines()[0] for page in PAGES if not commands(page) <= examples(page)] == []


@pytest.mark.requirement("A19", "A33")
async def test_a_capability_of_ours_is_in_our_namespace_and_has_a_page(crowd: Crowd) -> None:
    client = await crowd.connect()
    client.send("CAP LS 302")
    shown = [await client.expect("CAP", "*", "LS")]
    while shown[-1].params[2] == "*":
        shown.append(await client.expect("CAP", "*", "LS"))
    offered = {word.partition("=")[0] for line in shown for word in line.params[-1].split()}
    ours = {name for name in offered if is_ours(name)}
    assert {name for name in offered - ours if not name.startswith("draft/")} <= STANDARD_CAPS
    assert ours and all(name.startswith(VENDOR) for name in ours)
    assert [name for name in ours if not any(name in page for page in PAGES)] == []


@pytest.mark.requirement("A19", "A33")
async def test_a_tag_of_ours_is_in_our_namespace_and_has_a_page(crowd: Crowd) -> None:
    ori = await crowd.join("spark-ori", "#a")
    ada = await crowd.join("spark-ada", "#a", caps=f"message-tags server-time {VENDOR}mentions")
    await ori.ask("PRIVMSG #a :@spark-ada look")
    ours = (await ada.expect("PRIVMSG")).tags.keys() - STANDARD_TAGS
    assert ours and all(name.startswith(VENDOR) for name in ours)
    assert [name for name in ours if not any(name in page for page in PAGES)] == []
