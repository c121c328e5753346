"""Does the load generator notice what it claims to notice? It is run against a server that makes one mistake."""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.load import build

CLIENTS, SENDERS, MESSAGES = 6, 2, 50
FAULTY = 120
"""The delivery, counted over the whole run, with which the mistake is made."""
STALLED_QUEUE = 65536
STALLED_LOAD = (3000, 400)
"""Messages and bytes enough to fill what the kernel holds for a client that does not read."""

Mistake = Callable[["Broadcaster", "Member", bytes], None]


@dataclass(eq=False)
class Member:
    """A client of the broadcaster."""

    writer: asyncio.StreamWriter
    nick: str = ""
    held: bytes = b""
    """To be delivered after the next one of the same sender."""
    last: bytes = b""
    """To be delivered when the client believes that it has everything."""

    def send(self, line: bytes) -> None:
        """Queue a line."""
        if not self.writer.is_closing():
            self.writer.write(line + b"\r\n")


@dataclass
class Broadcaster:
    """The smallest server the generator can talk to; ``mistake`` replaces one delivery."""

    mistake: Mistake
    members: list[Member] = field(default_factory=list)
    deliveries: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until it ends."""
        member = Member(writer)
        try:
            while line := await reader.readline():
                self._handle(member, line.strip())
        except ConnectionError:
            pass
        finally:
            if member in self.members:
                self.members.remove(member)
            writer.transport.abort()

    def _handle(self, member: Member, line: bytes) -> None:
        verb, _, rest = line.partition(b" ")
        match verb:
            case b"NICK":
                member.nick = rest.decode()
            case b"USER":
                member.send(b":x 001 n :welcome")
            case b"JOIN":
                self.members.append(member)
                member.send(b":x 366 n " + rest + b" :end")
            case b"PING":
                if member.last:
                    member.send(member.last)
                member.send(b":x PONG x " + rest)
            case b"PRIVMSG":
                self._relay(member, b":" + member.nick.encode() + b" " + line)

    def _relay(self, sender: Member, line: bytes) -> None:
        for member in [member for member in self.members if member is not sender]:
            self.deliveries += 1
            if self.deliveries == FAULTY:
                self.mistake(self, member, line)
            elif member.writer.transport.get_write_buffer_size() > STALLED_QUEUE:
                member.writer.transport.abort()
            else:
                self._deliver(member, line)

    def _deliver(self, member: Member, line: bytes) -> None:
        member.send(line)
        if member.held.split(b" ")[0] == line.split(b" ")[0]:
            member.send(member.held)
            member.held = b""

    def hold(self, member: Member, line: bytes) -> None:
        """Delivered after the sender's next one."""
        member.held = line

    def correct(self, member: Member, line: bytes) -> None:
        """No mistake."""
        self._deliver(member, line)

    def lose(self, member: Member, line: bytes) -> None:
        """Never delivered."""

    def repeat(self, member: Member, line: bytes) -> None:
        """Delivered twice."""
        member.send(line)
        member.send(line)

    def repeat_late(self, member: Member, line: bytes) -> None:
        """Delivered again after everything else."""
        member.send(line)
        member.last = line

    def echo(self, member: Member, line: bytes) -> None:
        """Delivered, and to its sender too."""
        member.send(line)
        sender = line[1:].split(b" ", 1)[0].decode()
        next(other for other in self.members if other.nick == sender).send(line)

    def cut(self, member: Member, line: bytes) -> None:
        """Delivered without its end."""
        member.send(line[:30])

    def refuse(self, member: Member, line: bytes) -> None:
        """Delivered, with an error numeric."""
        member.send(line)
        member.send(b":x 404 n #ld0 :no")

    def disconnect(self, member: Member, line: bytes) -> None:
        """The client is dropped."""
        member.writer.transport.abort()


async def _exit_status(mistake: Mistake, *extra: str) -> tuple[int, str]:
    broadcaster = Broadcaster(mistake)
    server = await asyncio.start_server(broadcaster.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    arguments = f"-s fanout -n {CLIENTS} -S {SENDERS} -m {MESSAGES} -w 4 -T 1 -P {port}".split()
    generator = await asyncio.create_subprocess_exec(build(), *arguments, *extra, stdout=asyncio.subprocess.PIPE)
    output, _ = await generator.communicate()
    server.close()
    return generator.returncode or 0, output.decode()


async def _check() -> int:
    wrong = 0
    mistakes = {
        "lost": Broadcaster.lose,
        "delivered twice": Broadcaster.repeat,
        "delivered again later": Broadcaster.repeat_late,
        "out of order": Broadcaster.hold,
        "echoed to the sender": Broadcaster.echo,
        "cut short": Broadcaster.cut,
        "answered with an error": Broadcaster.refuse,
        "client dropped": Broadcaster.disconnect,
    }
    status, output = await _exit_status(Broadcaster.correct)
    wrong += _say("no mistake", status == 0, output)
    for name, mistake in mistakes.items():
        status, output = await _exit_status(mistake)
        wrong += _say(name, status == 1, output)
    messages, size = STALLED_LOAD
    status, output = await _exit_status(
        Broadcaster.correct, "-X", "2", "-m", str(messages), "-b", str(size), "-T", "20"
    )
    wrong += _say("slow readers dropped", status == 0 and '"stalled_dropped":2' in output, output)
    return wrong


def _say(name: str, right: bool, output: str) -> int:
    print(f"{name:24} {'seen' if right else 'MISSED: ' + output.strip()}")
    return 0 if right else 1


def main() -> int:
    """Try every mistake; 1 when one passes unseen."""
    return 1 if asyncio.run(_check()) else 0


if __name__ == "__main__":
    sys.exit(main())
