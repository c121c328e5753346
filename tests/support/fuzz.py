"""Garbage for a server: random bytes, and lines that almost make sense."""

import asyncio
import gc
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support.waiting import PATIENCE

# For every verb a line in which each parameter makes sense.
SAMPLES = {
    "ADMIN": "ADMIN spark",
    "AUTHENTICATE": "AUTHENTICATE PLAIN",
    "AWAY": "AWAY :tea",
    "BATCH": "BATCH +fuzz draft/multiline #fuzz",
    "CAP": "CAP LS 302",
    "CONNECT": "CONNECT thor 6667 spark",
    "CHATHISTORY": "CHATHISTORY BETWEEN #fuzz msgid=spark.5f0c2a91.42 timestamp=2026-03-19T10:00:00.000Z 10",
    "ENROL": "ENROL thor.local 3qJ0vXr9d8PzW5uT1kYbNcQ7aRfLmEhS 9f86d081884c7d659a2feaa0c55ad015",
    "HELP": "HELP PRIVMSG",
    "HELPOP": "HELPOP PRIVMSG",
    "HISTORY": "HISTORY SEARCH #fuzz :hello",
    "INFO": "INFO spark",
    "INVITE": "INVITE spark-prey #fuzz",
    "ISON": "ISON spark-prey spark-nobody",
    "JOIN": "JOIN #fuzz,#other key,key",
    "KICK": "KICK #fuzz spark-prey :out",
    "KILL": "KILL spark-nobody :out",
    "LEDGER": "LEDGER GET state spark-prey limit=5",
    "LINKS": "LINKS spark *",
    "LIST": "LIST #fuzz,#other >1",
    "LUSERS": "LUSERS * spark",
    "METADATA": "METADATA #fuzz SET agentirc.dev/purpose :a purpose",
    "MARKREAD": "MARKREAD #fuzz timestamp=2026-03-19T10:00:00.000Z",
    "MODE": "MODE #fuzz +ovb-k+l spark-prey spark-prey *!*@* key 5",
    "MONITOR": "MONITOR + spark-prey,spark-nobody",
    "MOTD": "MOTD spark",
    "NAMES": "NAMES #fuzz,#other spark",
    "NICK": "NICK spark-fuzz",
    "NOTICE": "NOTICE #fuzz,spark-prey :hello",
    "OPER": "OPER root wrong",
    "PART": "PART #fuzz,#other :bye",
    "PASS": "PASS secret",
    "PING": "PING token spark",
    "PONG": "PONG token spark",
    "PRIVMSG": "PRIVMSG #fuzz,spark-prey :hello @spark-prey",
    "QUIT": "QUIT :bye",
    "RECEIPT": "RECEIPT delivered #fuzz spark.5f0c2a91.42",
    "REGISTER": "REGISTER * * :correct horse",
    "REDEEM": "REDEEM fuzz 3qJ0vXr9d8PzW5uT1kYbNcQ7aRfLmEhS :correct horse",
    "REDACT": "REDACT #fuzz spark.5f0c2a91.42 :why",
    "REHASH": "REHASH now",
    "RENAME": "RENAME #fuzz #renamed :because",
    "SERVER": "SERVER thor 1 :a server",
    "SETNAME": "SETNAME :Another Name",
    "SQUIT": "SQUIT thor :because",
    "STATS": "STATS u spark",
    "TAGMSG": "@+typing=active TAGMSG #fuzz,spark-prey",
    "TIME": "TIME spark",
    "TOPIC": "TOPIC #fuzz :a topic",
    "URLS": "URLS #fuzz 5",
    "USER": "USER name 0 * :Real Name",
    "USERHOST": "USERHOST spark-prey spark-nobody",
    "VERIFY": "VERIFY fuzz 123456",
    "VERSION": "VERSION spark",
    "WALLOPS": "WALLOPS :hello",
    "WHO": "WHO #fuzz %tcuhnfar,42",
    "WHOIS": "WHOIS spark spark-prey",
    "WHOWAS": "WHOWAS spark-prey 5 spark",
}

_HUGE = ["x" * 420, "x" * 600, "#" + "é" * 200, ",".join(["#a"] * 150), "+" + "ovbklimnst" * 40, "*" * 400]
_PARTS = [
    "", ":", "*", "#", "##", "#fuzz", "#other", "#FUZZ", "@#fuzz", "+#fuzz", ",", ",,,", "#a,,#b",
    "spark", "spark.local", "spark-", "-", "spark-fuzz", "spark-prey", "@all", "@spark-prey", "0", "-1", "9" * 20,
    "+b", "+o", "-o", "+kl", "+q", "b", "*!*@*", "*?*?*?*?*!x@y", "$m:*", "m:*!*@*", "a:*", "m:a:x",
    "\\", "\x01ACTION\x01", "\x1f", "\x07", "é", "🦀", ":a long text with words in it",
    "GET", "SET", "SUB", "SYNC", "CLEAR", "agentirc.dev/state", "*ALL", "+P", "-P",
    "+fuzz", "-fuzz", "draft/multiline", ":draft/multiline batch",
    "LS", "302", "REQ", "END", "LIST", ":message-tags", ":-batch echo-message", "%tcuihsnfdlaor,999", ">0", "<5", "T<1",
]  # fmt: skip
_TAGS = [
    "@a=b ",
    "@batch=fuzz ",
    "@batch=fuzz;draft/multiline-concat;label=2 ",
    "@+draft/reply=x;label=1 ",
    "@label=é\\s\\:\\ ",
    "@;;= ",
    "@" + "x" * 4000 + " ",
    "",
]


def variants(line: str) -> Iterator[str]:
    """The line with each parameter missing, doubled, empty and huge."""
    head, colon, trailing = line.partition(" :")
    verb, *middle = head.split(" ")
    tags, verb, middle = (verb, middle[0], middle[1:]) if verb.startswith("@") else ("", verb, middle)
    params = [*middle, *([trailing] if colon else [])]
    replaced = [[*params[:i], *new, *params[i + 1 :]] for i in range(len(params)) for new in _replacements(params[i])]
    for words in [params, [], *replaced]:
        last = [f":{words[-1]}"] if words else []
        yield " ".join(part for part in (tags, verb, *words[:-1], *last) if part)


def _replacements(param: str) -> list[list[str]]:
    return [[], [param, param], [""], *([huge] for huge in _HUGE)]


def garbage(seed: int, verbs: Sequence[str], lines: int) -> bytes:
    """Lines of known and unknown verbs with parameters that hardly fit, ended in any way."""
    dice = random.Random(seed)
    made = []
    for _ in range(lines):
        verb = dice.choice(verbs) if dice.random() < 0.95 else dice.choice(["", "X", "123", "é", "PRIVMSG\x00"])
        words = [dice.choice(_HUGE if dice.random() < 0.03 else _PARTS) for _ in range(dice.randrange(7))]
        tags = dice.choice(_TAGS) if dice.random() < 0.2 else ""
        source = ":somebody!else@here " if dice.random() < 0.1 else ""
        made.append(
            tags + source + dice.choice([" ", " ", "  "]).join([verb, *words]) + dice.choice(["\r\n", "\n", "\r"])
        )
    return "".join(made).encode()


def noise(seed: int, size: int) -> bytes:
    """Random bytes."""
    return random.Random(seed).randbytes(size)


def login(nick: str, *more: str) -> bytes:
    """What it takes to be let in under this nick."""
    return "".join(f"{line}\r\n" for line in (f"NICK {nick}", "USER fuzz 0 * :fuzz", *more)).encode()


async def throw(port: int, data: bytes) -> bytes:
    """Connect, send all of it, hang up; what the server said until it closed."""
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        said = asyncio.create_task(_everything(reader))
        try:
            writer.write(data)
            await writer.drain()
            writer.write_eof()
        except OSError:  # it closed before we had finished, as it may
            pass
        finally:
            got = await said
            writer.close()
    return got


async def _everything(reader: asyncio.StreamReader) -> bytes:
    got = b""
    try:
        while data := await reader.read(65536):
            got += data
    except ConnectionResetError:
        pass
    return got


def resident_kib() -> int:
    """The memory this process holds."""
    gc.collect()
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0])
