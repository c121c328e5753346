"""Thirty agents and five people talk for hours: memory and descriptors of the server stay where they are (case B20)."""

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.machine import describe
from bench.servers import CULTURE_COMMAND, culture, running

AGENTS, PEOPLE = 30, 5
CHANNELS = [f"#room{number}" for number in range(6)]
KIB_PER_HOUR = 1024.0
DESCRIPTORS_PER_HOUR = 1.0
SAMPLES_SETTLING = 0.25  # the first quarter is for growing to size


@dataclass(frozen=True, slots=True)
class Sample:
    """The server at one moment."""

    seconds: float
    kib: int
    descriptors: int


class Talker:
    """One client: speaks now and then, asks, moves between channels, and sometimes comes anew."""

    def __init__(self, port: int, nick: str, pause: float, dice: random.Random) -> None:
        self._port, self._nick, self._pause, self._dice = port, nick, pause, dice
        self.said = 0

    async def run(self, end: float) -> None:
        """Talk until then."""
        while time.monotonic() < end:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            listening = asyncio.create_task(self._listen(reader, writer))
            try:
                writer.write(f"NICK {self._nick}\r\nUSER u 0 * :soak\r\nJOIN {','.join(CHANNELS)}\r\n".encode())
                stay = min(end, time.monotonic() + self._dice.expovariate(1 / 120))
                while time.monotonic() < stay and not listening.done():
                    writer.write(self._line().encode())
                    await writer.drain()
                    await asyncio.sleep(self._dice.expovariate(1 / self._pause))
            finally:
                writer.close()
                listening.cancel()
                with suppress(asyncio.CancelledError, ConnectionError):
                    await listening

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            if line.startswith(b"PING") or b" PING " in line[:40]:
                writer.write(b"PONG :soak\r\n")

    def _line(self) -> str:
        channel = self._dice.choice(CHANNELS)
        self.said += 1
        return (
            self._dice.choice(
                [f"PRIVMSG {channel} :{self._dice.random()} {'word ' * self._dice.randrange(40)}"] * 12
                + [f"PRIVMSG {channel} :@spark-agent{self._dice.randrange(AGENTS)} look", f"WHO {channel}", "LIST"]
                + [f"TOPIC {channel} :{self._dice.random()}", f"PART {channel}", f"JOIN {channel}", "AWAY :x", "AWAY"]
            )
            + "\r\n"
        )


def slope(samples: Sequence[tuple[float, float]]) -> float:
    """How the second figure grows per second of the first (least squares)."""
    mean_x = sum(x for x, _ in samples) / len(samples)
    mean_y = sum(y for _, y in samples) / len(samples)
    spread = sum((x - mean_x) ** 2 for x, _ in samples)
    return sum((x - mean_x) * (y - mean_y) for x, y in samples) / spread if spread else 0.0


def _sample(pid: int, since: float) -> Sample:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    return Sample(round(time.monotonic() - since, 1), kib, len(list(Path(f"/proc/{pid}/fd").iterdir())))


async def _talk(port: int, pid: int, seconds: float, seed: int) -> tuple[list[Sample], int]:
    dice = random.Random(seed)
    agents = [Talker(port, f"spark-agent{number}", 2.0, random.Random(dice.random())) for number in range(AGENTS)]
    people = [Talker(port, f"spark-person{number}", 8.0, random.Random(dice.random())) for number in range(PEOPLE)]
    began = time.monotonic()
    talking = asyncio.gather(*(each.run(began + seconds) for each in (*agents, *people)))
    samples: list[Sample] = []
    while not talking.done():
        samples.append(_sample(pid, began))
        await asyncio.wait([talking], timeout=max(1.0, seconds / 500))
    await talking
    return samples, sum(each.said for each in (*agents, *people))


def main(argv: Sequence[str] | None = None) -> int:
    """Soak the server; 1 when memory or descriptors keep growing."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=120.0, help="default 120")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample there")
    arguments = parser.parse_args(argv)
    server = culture(CULTURE_COMMAND)
    with running(server) as target:
        samples, said = asyncio.run(_talk(target.port, target.pid, arguments.minutes * 60, arguments.seed))
    settled = samples[int(len(samples) * SAMPLES_SETTLING) :]
    per_hour = {
        "kib": round(slope([(each.seconds, each.kib) for each in settled]) * 3600, 1),
        "descriptors": round(slope([(each.seconds, each.descriptors) for each in settled]) * 3600, 3),
    }
    record = {
        "machine": describe(),
        "minutes": arguments.minutes,
        "lines_sent": said,
        "growth_per_hour": per_hour,
        "samples": [asdict(each) for each in samples[:: max(1, len(samples) // 60)]],
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"{said} lines in {arguments.minutes:g} min; growth per hour: {per_hour}")
    return 0 if per_hour["kib"] <= KIB_PER_HOUR and per_hour["descriptors"] <= DESCRIPTORS_PER_HOUR else 1


if __name__ == "__main__":
    sys.exit(main())
