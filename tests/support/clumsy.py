"""Skills for tests: one that fails wherever it is told to, one beside it that works, and some that cannot be had."""

import asyncio
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

from culture.config.values import Settings
from culture.protocol.message import Message
from culture.protocol.numerics import Numeric
from culture.server.commands import Later, command
from culture.server.context import Context
from culture.server.core.session import Session
from culture.server.errors import Failed, Refused
from culture.server.events import Joined, Said
from culture.server.skill import Host, Skill, hook

CAP = "example.org/clumsy"


class Stumbled(Exception):
    """What goes wrong."""


def stumble(*_: object) -> NoReturn:
    raise Stumbled("over its\nown feet")


def cancelled() -> "asyncio.Future[None]":
    """Something that somebody else gave up."""
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    return future


def said(text: str, host: Host) -> None:
    """Let the server say something in #general."""
    host.publish(Said(host.stamp(), host.name, "PRIVMSG", "#general", text, None, "bot", {}))


class ClumsySettings(Settings):
    """Where it fails before any client is there, or after the last."""

    where: str = ""
    most: int = 3


class Ears:
    """A place of its own for hooks, made anew whenever it is asked for."""

    def __init__(self, skill: "Clumsy") -> None:
        self.skill = skill

    @hook(Said)
    def hears(self, event: Said) -> None:
        self.skill.heard.append(event.text)
        self.skill.by.append(self.skill.host.by)
        self.skill.stumbles.get(event.text, lambda: None)()

    @hook(Said)
    def listens(self, event: Said) -> None:
        self.skill.listened.append(event.text)


class Clumsy(Skill):
    """Answers STUMBLE, and stumbles over what is said."""

    name = "clumsy"
    Settings = ClumsySettings
    settings: ClumsySettings

    def __init__(self, host: Host, settings: ClumsySettings) -> None:
        super().__init__(host, settings)
        self.heard: list[str] = []
        self.listened: list[str] = []
        self.by: list[Session | None] = []
        self.calls: list[str] = []
        self.cleaned = asyncio.Event()
        self.stumbles: dict[str, Callable[[], Any]] = {
            "hook": stumble,
            "exit": sys.exit,
            "cancelled": lambda: cancelled().result(),
            "task": lambda: host.start(self._stumble_later()),
            "idle": lambda: host.start(self._idle()),
            "cancelled task": lambda: host.start(self._await(cancelled())),
            "exiting task": lambda: host.start(self._exit()),
            "thread": lambda: threading.Thread(target=self._stumble_in_a_thread).start(),
            "telling": lambda: threading.Thread(target=host.tell_operators, args=("from afar",)).start(),
            "echo": self._echo,
            "gone": lambda: host.when_gone(stumble),
        }
        self._at("init")

    @property
    def opened(self) -> str:
        """Has no answer before the start, and must not be asked for one."""
        raise Stumbled("not open yet")

    def _at(self, where: str) -> None:
        self.calls.append(where)
        if self.settings.where == where:
            stumble()

    async def start(self) -> None:
        self._at("start")

    async def stop(self) -> None:
        self._at("stop")
        if self.settings.where == "hang":
            await asyncio.Event().wait()

    def places(self) -> Iterable[object]:
        self._at("places")
        return (self, Ears(self))

    def caps(self) -> Mapping[str, str | None]:
        self._at("caps")
        return {CAP: None}

    def isupport(self) -> Iterable[str]:
        self._at("isupport")
        return ("CLUMSY",)

    @command("STUMBLE", params=1)
    def on_stumble(self, ctx: Context, message: Message) -> Later | None:
        """``STUMBLE how``: see what comes of it."""
        match message.params[0]:
            case "verb":
                stumble()
            case "exit":
                sys.exit()
            case "work":
                return Later(self._stumble_later(), stumble)
            case "then":
                return Later(asyncio.sleep(0), stumble)
            case "chain":
                return Later(asyncio.sleep(0), lambda _: Later(asyncio.sleep(0), stumble))
            case "cancelled":
                return Later(cancelled(), stumble)
            case "refused work":
                return Later(self._refuse(), stumble)
            case "failed then":
                return Later(asyncio.sleep(0), self._fail)
            case "rows":
                ctx.pull(_rows(ctx))
            case "off":
                return Later(self._off(), stumble)
            case how:
                ctx.send("STUMBLED", ctx.nick, how)
        return None

    async def _stumble_later(self) -> None:
        await asyncio.sleep(0)
        stumble()

    async def _await(self, future: "asyncio.Future[None]") -> None:
        await future

    async def _exit(self) -> None:
        sys.exit()

    async def _idle(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.cleaned.set()

    async def _refuse(self) -> NoReturn:
        raise Refused(Numeric.ERR_NOSUCHCHANNEL, "#nowhere")

    def _fail(self, _: object) -> NoReturn:
        raise Failed("STUMBLE", "TOO_CAREFUL", text="It did not stumble")

    async def _off(self) -> None:
        self.host.failed(Stumbled("elsewhere"))

    def _stumble_in_a_thread(self) -> None:
        self.host.failed(Stumbled("in a thread"))

    def _echo(self) -> None:
        """Answers itself, without end."""
        said("echo", self.host)


def _rows(ctx: Context) -> Iterator[Message]:
    yield Message("STUMBLED", (ctx.nick, "one"), ctx.router.name)
    stumble()


class Steady(Skill):
    """Goes on whatever happens to others."""

    name = "steady"

    def __init__(self, host: Host, settings: Settings) -> None:
        super().__init__(host, settings)
        self.heard: list[str] = []
        self.stopped = False

    async def stop(self) -> None:
        self.stopped = True

    @hook(Said, Joined)
    def hears(self, event: Said | Joined) -> None:
        """Listen."""
        if isinstance(event, Said):
            self.heard.append(event.text)
            if event.text == "aside":
                said("an answer to that", self.host)

    @command("STEADY")
    def steady(self, ctx: Context, message: Message) -> None:
        """``STEADY``: still here."""
        ctx.send("STEADY", ctx.nick, "yes")


class TakesJoin(Skill):
    """Wants a verb that the server has."""

    name = "takesjoin"

    @command("JOIN")
    def join(self, ctx: Context, message: Message) -> None:
        """``JOIN``: never."""


class TakesSteady(Skill):
    """Wants a verb that another skill has."""

    name = "takessteady"

    @command("STEADY")
    def steady(self, ctx: Context, message: Message) -> None:
        """``STEADY``: never."""


class Lower(Skill):
    """Wants a verb that no client can send."""

    name = "lower"

    @command("lower")
    def lower(self, ctx: Context, message: Message) -> None:
        """``lower``: never."""


class Twice(Skill):
    """Wants one verb twice."""

    name = "twice"

    @command("TWICE")
    def one(self, ctx: Context, message: Message) -> None:
        """``TWICE``: never."""

    @command("TWICE")
    def other(self, ctx: Context, message: Message) -> None:
        """``TWICE``: never."""


class TakesBatch(Skill):
    """Offers a capability that the server has."""

    name = "takesbatch"

    def caps(self) -> Mapping[str, str | None]:
        return {"batch": None}


class NoSkill:
    """Something else."""

    name = "noskill"
