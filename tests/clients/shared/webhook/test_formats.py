"""What is posted: as the page shows it, fitting, and calm."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture.clients.shared.webhook import texts
from culture.clients.shared.webhook.alerts import SEVERITY, Alert, Bundle
from culture.clients.shared.webhook.formats import STYLES, Kind, body_for, kind_of, split_topic, text_for
from culture.clients.shared.webhook.signing import signed
from culture.config.agents import AlertEvent
from culture.lib.ssrf_guard import HttpTarget, TargetRefused
from culture.protocol.mentions import calls_all, mentions
from culture.protocol.text import Profile, one_line

PAGE = (Path(__file__).parents[4] / "docs" / "clients" / "claude" / "webhooks.md").read_text(encoding="utf-8")
KINDS: tuple[Kind, ...] = get_args(Kind)
LINK = "irc://spark.local:6667/%23alerts"


def bundle(*lines: str, more: int = 0, event: AlertEvent = "agent_error", nick: str = "spark-assimilai") -> Bundle:
    alerts = tuple(Alert(event, nick, line, LINK) for line in lines)
    return Bundle("5d3f1c9a0b7e4862a1c0ffee12345678", alerts, more, datetime(2026, 3, 19, 10, tzinfo=UTC))


def section(title: str, language: str) -> str:
    found = re.search(rf"^##+ {title}\n.*?```{language}\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


@pytest.mark.parametrize(
    ("title", "kind"), [("Discord", "discord"), ("Slack", "slack"), ("ntfy", "ntfy"), ("JSON", "json")]
)
@pytest.mark.requirement("J09")
def test_what_is_posted_is_what_the_page_shows(title: str, kind: Kind) -> None:
    said = body_for(kind, bundle("[ERROR] spark-assimilai crashed: process exited with code 1"), "my-agents")
    assert json.loads(said) == json.loads(section(title, "json"))


@pytest.mark.requirement("J08")
def test_the_texts_are_the_documented_ones() -> None:
    said = [
        texts.spiraling("spark-culture", "benchmark nemotron", "Retried cmake 4 times"),
        texts.question("spark-culture", "Delete 47 files. Proceed?"),
        texts.timeout("spark-culture", "Delete 47 files. Proceed?"),
        texts.crashed("spark-assimilai", 1),
        texts.complete("spark-culture", "benchmark nemotron", "#benchmarks"),
        texts.complete("spark-culture", "my password is 1234", "spark-ori"),
    ]
    for text in said:
        assert f"`{text}`" in PAGE
    assert texts.spiraling("a", "b", "It waits.") == '[SPIRALING] a stuck on task "b". It waits. Awaiting guidance.'


@pytest.mark.requirement("J02", "J03", "J04", "J05", "J06")
def test_the_events_have_the_documented_severity() -> None:
    rows = re.findall(r"^\| `(agent_\w+)` \| .*? \| (\w+) \| `", PAGE, re.MULTILINE)
    assert {event: severity.name.lower() for event, severity in SEVERITY.items()} == dict(rows)


@pytest.mark.parametrize(
    ("host", "kind"),
    [
        ("discord.com", "discord"),
        ("Canary.Discord.com", "discord"),
        ("hooks.slack.com", "slack"),
        ("ntfy.sh", "ntfy"),
        ("ntfy.example.org", "ntfy"),
        ("discord.com.example.org", "json"),
        ("notdiscord.com", "json"),
        ("127.0.0.1", "json"),
    ],
)
@pytest.mark.requirement("J09")
def test_the_host_tells_the_kind(host: str, kind: Kind) -> None:
    assert kind_of(host) == kind


def test_ntfy_is_told_the_topic_in_the_body() -> None:
    target, topic = split_topic(HttpTarget.parse("https://u:p@ntfy.example.org/under/my%20topic?x=1"))
    assert (topic, target.path, target.authorization) == ("my topic", "/under/?x=1", "Basic dTpw")
    with pytest.raises(TargetRefused, match="no topic"):
        split_topic(HttpTarget.parse("https://ntfy.sh/"))


NASTY = "@everyone @here <@123> <!channel> <https://evil|ok> **bold** [a](https://evil) `code` ||spoiler|| # head &amp;"


@pytest.mark.fault("H9")
def test_discord_mentions_nobody_and_formats_nothing() -> None:
    said = json.loads(body_for("discord", bundle(NASTY)))
    assert said["allowed_mentions"] == {"parse": []}
    assert "@everyone" not in said["content"] and "@here" not in said["content"]
    assert not re.search(r"(?<!\\)[*_~`|\[\]()<>]", said["content"])


@pytest.mark.fault("H9")
def test_slack_mentions_nobody_and_formats_nothing() -> None:
    said = json.loads(body_for("slack", bundle(NASTY)))
    assert said["mrkdwn"] is False
    assert not re.search(r"[<>]|&(?!(amp|lt|gt);)|@(everyone|here)", said["text"])
    assert "&lt;!channel&gt;" in said["text"] and said["text"].endswith("# head &amp;amp;")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("letter", ["x", "*", "&", "\U0001f600", "ü"])
@pytest.mark.fault("H9")
def test_ten_kilobytes_are_cut_with_a_link(kind: Kind, letter: str) -> None:
    text = text_for(kind, bundle(letter * 10_000, more=7))
    style = STYLES[kind]
    assert style.longest - 20 <= style.size(text) <= style.longest
    assert LINK in text and text.endswith("\n… and 7 more")


@pytest.mark.parametrize("kind", KINDS)
def test_a_question_has_its_link_in_the_text_where_the_receiver_has_no_field_for_it(kind: Kind) -> None:
    asked = Alert("agent_question", "spark-a", "Delete it?", LINK, "#general", "q7", ("yes", "no"))
    text = text_for(kind, replace(bundle(), alerts=(asked,)))
    assert (LINK in text) == (kind in ("discord", "slack"))


@given(st.sampled_from(KINDS), st.lists(st.text(max_size=900), min_size=1, max_size=5), st.integers(0, 10**6))
@pytest.mark.fault("H9")
def test_whatever_is_said_fits(kind: Kind, lines: list[str], more: int) -> None:
    said = bundle(*map(partial(one_line, profile=Profile.WEB), lines), more=more)
    assert STYLES[kind].size(text_for(kind, said)) <= STYLES[kind].longest
    assert json.loads(body_for(kind, said, "topic"))


@pytest.mark.fault("H9")
def test_in_the_channel_it_is_one_line_that_wakes_nobody() -> None:
    text = texts.question("spark-a", "ask @spark-b,\r\nthen\x03@all: \x0304,01red\x0f \u202eevil\nspark-b: do it")
    said = texts.said(one_line(text, Profile.WEB), "spark-a")
    assert mentions(said, ["spark-a", "spark-b"]) == () and not calls_all(said)
    assert not re.search(r"[\x00-\x1f\u202e]", said)
    assert texts.said(texts.parked("spark-a", 3, 300), "spark-a").endswith("Reply @spark-a resume")
    assert len(texts.said("ü" * 5000, "spark-a").encode()) <= texts.LONGEST_LINE + 3


@given(st.text(alphabet="@ab-c: ,.\n", max_size=60))
@pytest.mark.fault("H9")
def test_no_text_calls_another_agent_in_the_channel(text: str) -> None:
    said = texts.said(one_line(texts.complete("a-b", text, "#x"), Profile.WEB), "a-b")
    assert set(mentions(said, ["a-b", "a-c", "b-c", "c"])) <= {"a-b"}


def accept() -> Callable[..., bool]:
    """The receiver that the page shows."""
    names: dict[str, Any] = {}
    exec(section("The signature", "python"), names)
    found: Callable[..., bool] = names["accept"]
    return found


@pytest.mark.fault("H7")
def test_the_receiver_of_the_page_takes_each_post_once() -> None:
    receiver, seen, at = accept(), set[str](), 1_773_914_400
    body = body_for("json", bundle("[ERROR] x"))
    headers = signed("correct horse", body, at)
    assert receiver("correct horse", headers, body, at + 10, seen)
    assert not receiver("correct horse", headers, body, at + 20, seen), "a replay"
    assert not receiver("correct horse", headers, body, at + 3600, set()), "a late replay"
    assert not receiver("wrong", headers, body, at, set())
    assert not receiver("correct horse", headers, body + b" ", at, set())
    moved = {**headers, "X-Culture-Timestamp": str(at + 3600)}
    assert not receiver("correct horse", moved, body, at + 3600, set()), "the time is signed as well"


@pytest.mark.fault("H7")
def test_the_signature_on_the_page_is_right() -> None:
    shown = dict(re.findall(r"^    (X-Culture-\w+): (\S+)$", PAGE, re.MULTILINE))
    assert signed("correct horse", b'{"id": "1"}', 1773914400) == shown
