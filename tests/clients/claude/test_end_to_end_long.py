"""Fifty kilobytes with code in them arrive whole at somebody who sits at weechat."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from culture.config.model import Flood
from tests.clients.claude.rooms import GENERAL, NICK, SKILL, configured, wendy_at_weechat
from tests.support.agents import running
from tests.support.model import Model
from tests.support.servers import serving

PARAGRAPHS = 32
END = "That was all."
CODE = '''\
```python
def total(numbers: list[int]) -> int:
    """The sum, with a tab: \\t, and quotes: 'a' "b" `c`."""
    result = 0

    for number in numbers:
        if number > {0}:
            result += number * {0}  # naïve, 日本語 🎉
    return result
```'''


def long_text() -> str:
    """Paragraphs of one long line each, a word that fits into no line, and code between them."""
    parts = []
    for number in range(PARAGRAPHS):
        words = [f"{word}{number}" for word in ("when", "the", "büild", "is", "grün,", "日本語", "again:")]
        parts += [" ".join(words * 25), CODE.replace("{0}", str(number))]
    return "\n\n".join([*parts, "https://example.org/" + "x" * 900, "/quit now", END]) + "\n"


def shown(log: Path) -> Iterator[str]:
    """What the agent said, as the log of weechat's buffer has it."""
    for line in log.read_text(encoding="utf-8").splitlines():
        _, who, text = line.split("\t", 2)
        if who.lstrip("@+") == NICK:
            yield text


@pytest.mark.fault("E20")
@pytest.mark.parametrize("way", ["as its last words", "through its skill"])
async def test_fifty_kilobytes_arrive_whole_in_weechat(way: str, home: Path, model: Model, tmp_path: Path) -> None:
    text = long_text()
    assert len(text.encode()) > 50_000
    book = tmp_path / "book"
    book.write_text(text, encoding="utf-8")
    script = f"[[recite {book}]]" if way == "as its last words" else f'[[bash {SKILL} send "{GENERAL}" - < {book}]]'
    # With the limits that people have.
    async with serving(tmp_path / "server", flood=Flood()) as ircd, wendy_at_weechat(ircd, tmp_path) as wendy:
        async with running(configured(ircd, home), NICK):
            await wendy.shows(rf"{NICK} \(.*\) has joined", GENERAL)
            wendy.type(f"@{NICK} tell {script}", GENERAL)
            await wendy.shows(f"^.?{NICK} {END}$", GENERAL)
        lines = list(shown(tmp_path / "weechat" / "logs" / f"irc.127.0.0.1.{GENERAL}.weechatlog"))
    # Nothing is lost, nothing comes twice; only the space where a line of prose was cut, and empty lines are gone.
    assert "".join("".join(lines).split()) == "".join(text.split())
    written = [line for line in text.splitlines() if line.strip() and len(line.encode()) < 300]
    assert [line for line in lines if line in written] == written
    assert max(len(line.encode()) for line in lines) < 500
