"""What a link carries: messages from one server to the other per second, each once and in order, and how late."""

import asyncio
import re
import time
from dataclasses import dataclass
from statistics import median, quantiles

from bench.linked import PATIENCE, Talker, cpu, pair, sees, wait_for

SENDERS, BODY = 10, 64
_AHEAD = 1_000
_CHANNEL = "#mesh"
_ARRIVAL = re.compile(rb":spark-s(\d+)[^ ]* PRIVMSG #mesh :(\d{8})")
_ROUNDS, _BLOCK = 4_000, 100


@dataclass(frozen=True)
class Relay:
    """Messages of all senders on spark, received by one client on thor."""

    messages: int
    per_s: float
    spark_cpu_s_per_million: float
    thor_cpu_s_per_million: float


@dataclass(frozen=True)
class Latency:
    """How long a message takes from one client to another, in microseconds."""

    kind: str
    same_server_p50_us: float
    one_hop_p50_us: float
    one_hop_p99_us: float

    @property
    def added_us(self) -> float:
        """What the hop costs."""
        return self.one_hop_p50_us - self.same_server_p50_us


class Load:
    """Keeps every sender some messages ahead of what has arrived, and checks what arrives."""

    def __init__(self, writers: list[asyncio.StreamWriter], each: int) -> None:
        self._writers = writers
        self._each = each
        self._sent = [0] * len(writers)
        self._heard = [0] * len(writers)
        self._rest = b""

    @property
    def is_done(self) -> bool:
        """Whether everything has arrived."""
        return sum(self._heard) == self._each * len(self._writers)

    def top_up(self) -> None:
        """Send what may be sent."""
        for number, writer in enumerate(self._writers):
            sent, goal = self._sent[number], min(self._heard[number] + _AHEAD, self._each)
            if goal - sent >= _AHEAD // 2 or goal == self._each > sent:
                lines = [f"PRIVMSG {_CHANNEL} :{index:08} {'x' * (BODY - 9)}\r\n" for index in range(sent, goal)]
                writer.write("".join(lines).encode())
                self._sent[number] = goal

    def take(self, data: bytes) -> None:
        """What the receiver read; a message that is not the next of its sender ends it all."""
        *lines, self._rest = (self._rest + data).split(b"\r\n")
        for line in lines:
            found = _ARRIVAL.match(line)
            if found is None:
                continue
            sender, index = int(found[1]), int(found[2])
            if index != self._heard[sender]:
                raise SystemExit(f"sender {sender}: {index} arrived where {self._heard[sender]} was due")
            self._heard[sender] += 1


def relay(messages: int, history: bool) -> Relay:
    """So many messages from spark to thor."""
    with pair(history) as (spark, thor):
        receiver = Talker(thor.port, "thor-r")
        receiver.ask(f"JOIN {_CHANNEL}", " 366 ")
        receiver.ask(f"MODE {_CHANNEL} -n", " MODE ")
        senders = [Talker(spark.port, f"spark-s{number}") for number in range(SENDERS)]
        wait_for(lambda: _is_open(senders[0]), "linked")
        before = cpu(spark), cpu(thor)
        took = asyncio.run(_flow(senders, receiver, messages // SENDERS))
        computed = [cpu(each) - begun for each, begun in zip((spark, thor), before, strict=True)]
    total = messages // SENDERS * SENDERS
    return Relay(total, total / took, *(seconds / total * 1e6 for seconds in computed))


def _is_open(sender: Talker) -> bool:
    """Whether those outside may speak in the channel: it came over the link."""
    sender.send(f"MODE {_CHANNEL}")
    answer = sender.ask("PING open", " PONG ")
    return any(" 324 " in line and "n" not in line.split(" ")[4] for line in answer)


async def _flow(senders: list[Talker], receiver: Talker, each: int) -> float:
    streams = [await asyncio.open_connection(sock=talker.socket) for talker in (*senders, receiver)]
    reader, load = streams[-1][0], Load([writer for _, writer in streams[:-1]], each)
    began = time.perf_counter()
    load.top_up()
    while not load.is_done:
        async with asyncio.timeout(PATIENCE):
            data = await reader.read(1 << 18)
        if not data:
            raise SystemExit("the receiver was dropped")
        load.take(data)
        load.top_up()
    took = time.perf_counter() - began
    for _, writer in streams:
        writer.close()
    return took


def latency(kind: str, history: bool) -> Latency:
    """Two clients that answer each other, on one server and on two, in turn; ``kind`` is channel or private."""
    with pair(history) as (spark, thor):
        one, near, far = (
            Talker(port, nick)
            for port, nick in ((spark.port, "spark-one"), (spark.port, "spark-near"), (thor.port, "thor-far"))
        )
        wait_for(lambda: sees(one, far.nick) and sees(far, one.nick), "linked")
        times: dict[str, list[float]] = {"near": [], "far": []}
        for _ in range(_ROUNDS // _BLOCK):
            for name, other in (("near", near), ("far", far)):
                times[name] += _ping_pong(one, other, kind, f"#{name}")
    p99 = quantiles(times["far"], n=100)[98]
    return Latency(kind, median(times["near"]), median(times["far"]), p99)


def _ping_pong(one: Talker, other: Talker, kind: str, channel: str) -> list[float]:
    """One way of each round trip."""
    there, back = (channel, channel) if kind == "channel" else (other.nick, one.nick)
    if kind == "channel":
        _meet(one, other, channel)
    times = []
    for _ in range(_BLOCK):
        began = time.perf_counter()
        one.send(f"PRIVMSG {there} :ping")
        other.until(" PRIVMSG ")
        other.send(f"PRIVMSG {back} :pong")
        one.until(" PRIVMSG ")
        times.append((time.perf_counter() - began) / 2 * 1e6)
    return times


def _meet(one: Talker, other: Talker, channel: str) -> None:
    for talker in (one, other):
        talker.ask(f"JOIN {channel}\r\nPING in", " PONG ")
    wait_for(lambda: _is_in(one, other, channel) and _is_in(other, one, channel), f"both in {channel}")


def _is_in(talker: Talker, other: Talker, channel: str) -> bool:
    """Whether one of them sees the other there."""
    return any(other.nick in line for line in talker.ask(f"NAMES {channel}", " 366 ") if " 353 " in line)
