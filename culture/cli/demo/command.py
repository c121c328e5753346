"""``culture demo`` itself."""

import asyncio
import signal
from collections.abc import Awaitable
from contextlib import suppress
from typing import Annotated

import typer

from culture.cli.demo.narrator import DemoScene, Narrator
from culture.cli.demo.participants import AGENTS, EVE, HERE, THERE, YOU
from culture.cli.demo.scenes import SCENES, TITLES
from culture.cli.demo.stage import HOST, DemoStage, SceneFailed, raised
from culture.protocol.vocabulary import Exit
from culture.transport import NotSent

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def demo(
    fast: Annotated[bool, typer.Option("--fast", help="Without pauses for reading.")] = False,
    port: Annotated[
        int,
        typer.Option("--port", min=0, max=65535, metavar="PORT", help="Of the first server.  [default: a free one]"),
    ] = 0,
    web: Annotated[bool, typer.Option("--web/--no-web", help="Show it in the web page too.")] = True,
    keep_open: Annotated[
        bool, typer.Option("--keep-open", help="Leave everything running afterwards, until Ctrl-C.")
    ] = False,
) -> None:
    """Show everything in less than a minute, with nothing kept.

    Two linked servers, agents without a model, a question, an agent that goes in
    circles, a network that splits and heals, and two agents that do not stop by
    themselves. It all lives in a temporary folder; ~/.culture is not touched, and
    at the end nothing is left.
    """
    narrator = Narrator(fast)
    narrator.say(
        f"Two servers ({HERE}, {THERE}), two people ({YOU} is you, {EVE}), {len(AGENTS)} agents that follow a playbook "
        "and cost nothing. Ctrl-C ends it at any time. Everything starts …"
    )
    code = asyncio.run(_until_told(_play(narrator, port, web, keep_open)))
    raise typer.Exit(code)


async def _until_told(playing: Awaitable[Exit]) -> Exit:
    """Play; a signal breaks it off, and everything is cleared away before this returns."""
    show = asyncio.ensure_future(playing)
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, show.cancel)
    try:
        return await show
    except asyncio.CancelledError:
        typer.echo("\nBroken off. Nothing of it is left.")
        return Exit.ABORTED


async def _play(narrator: Narrator, port: int, web: bool, keep_open: bool) -> Exit:
    seen: list[str] = []
    try:
        async with raised(port, web) as stage:
            _introduce(stage)
            await narrator.pause(4.0 if stage.page else 2.0)
            for number, (scene, title) in enumerate(zip(SCENES, TITLES, strict=True), 1):
                narrator.title(number, title)
                await narrator.pause(0.5)
                seen.append(await scene(DemoScene(stage, narrator)))
                narrator.seen(seen[-1])
                await narrator.pause(1.5)
            if keep_open:
                await _stay(stage)
    except (SceneFailed, NotSent) as missed:
        narrator.missed(str(missed))
        typer.echo(f"\nSeen: {len(seen)} of {len(SCENES)} scenes. What was started has ended.")
        return Exit.FAILED
    _close(narrator, seen)
    return Exit.DONE


def _introduce(stage: DemoStage) -> None:
    for name, port in stage.ports.items():
        agents = ", ".join(nick for nick, home in AGENTS.items() if home == name)
        typer.echo(f"   {name:<6} {HOST}:{port}   agents: {agents}")
    if stage.page:
        typer.echo(f"   watch  {stage.page}   (logs you in as {YOU}, once)")
    elif stage.no_page:
        typer.echo(f"   The web page is not shown: {stage.no_page}")


async def _stay(stage: DemoStage) -> None:
    """Let people look around; a signal is not a failure here."""
    typer.echo("\nAll of it runs until Ctrl-C. From another terminal:")
    typer.echo(f"   export CULTURE_HOME={stage.folder} XDG_RUNTIME_DIR={stage.folder / 'run'}")
    typer.echo(f"   culture status; culture digest --nick {YOU}; culture say --nick {YOU} '#general' hello")
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


def _close(narrator: Narrator, seen: list[str]) -> None:
    typer.echo(f"\nSeen in {narrator.elapsed:.0f} s: {len(seen)} of {len(SCENES)} scenes, each proven by the ledger.")
    typer.echo("Everything has ended, and its folder is removed. Your own: `culture up`.")
