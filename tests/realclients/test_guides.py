"""The guides for weechat and irssi, typed as they stand there."""

import re
from pathlib import Path

import pytest

from culture.server.ircd import IRCd
from tests.realclients.irssi import irssi, run
from tests.realclients.people import GENERAL
from tests.realclients.weechat import CORE, weechat

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"


def lines(client: str, port: int) -> list[str]:
    text = (GUIDES / f"{client}.md").read_text("utf-8")
    blocks = re.findall(rf"^```{client}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    return [line.replace("6667", str(port)) for block in blocks for line in block.splitlines()]


@pytest.mark.requirement("A03")
async def test_the_lines_for_weechat_connect_and_search(ircd: IRCd, tmp_path: Path) -> None:
    async with weechat(tmp_path / "weechat", server="culture") as person:
        before_4 = re.match("[0-3]\\.", await run("weechat-headless", "--version"))
        for line in lines("weechat", ircd.port):
            person.type(line.replace("-notls", "-nossl") if before_4 else line, CORE)
        await person.shows(r"spark-ori \(.*\) has joined #general", GENERAL)
        person.type("the release notes are out", GENERAL)
        await person.shows("release notes are out", GENERAL)
        person.type("/find release notes", GENERAL)
        await person.shows("release notes are out")
        person.type("/again 5", GENERAL)
        await person.shows("--- #general: 1 message ---")


@pytest.mark.requirement("A03")
async def test_the_lines_for_irssi_connect_and_search(ircd: IRCd, tmp_path: Path) -> None:
    async with irssi(tmp_path / "irssi") as person:
        for line in lines("irssi", ircd.port):
            await person.type(line)
        await person.shows(r"spark-ori \[.*\] has joined #general")
        await person.type("/window goto #general")
        await person.type("the release notes are out")
        await person.type("/find release notes")
        await person.shows(r"(?i)history.*release notes are out")
        await person.type("/again 5")
        await person.shows("--- #general: 1 message ---")
