"""The command ``culture demo``."""

import asyncio
import signal
from collections.abc import Awaitable
from contextlib import suppress
from typing import Annotated

import typer

from culture.cli.demo.participants import AGENTS, EVE, HERE, THERE, YOU
from culture.cli.demo.scenes import SCENES, TITLES, DemoScene, Narrator
from culture.cli.demo.stage import HOST, DemoStage, SceneFailed, running_stage
from culture.protocol.vocabulary import Exit
from culture.transport import NotSent

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def demo(
    fast: Annotated[bool, typer.Option("--fast", help="Do not pause for reading.")] = False,
    port: Annotated[
        int,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            metavar="PORT",
            show_default=False,
            help="Port of the first server; 0, the default, picks a free one.",
        ),
    ] = 0,
    web: Annotated[bool, typer.Option("--web/--no-web", help="Show it on the web page too.")] = True,
    keep_open: Annotated[bool, typer.Option("--keep-open", help="Keep everything running until Ctrl-C.")] = False,
) -> None:
    """Show the main features in less than a minute, and leave nothing behind.

    Two linked servers, agents without a model, a question, an agent that goes in circles, a netsplit and its repair,
    and two agents in a reply loop. Everything is in a temporary folder; ~/.culture is not touched.
    """
    narrator = Narrator(fast)
    narrator.say(
        f"Two servers ({HERE}, {THERE}), two people ({YOU} is you, {EVE}), {len(AGENTS)} agents that follow a playbook "
        "and cost nothing. Ctrl-C ends it at any time. Everything starts …"
    )
    code = asyncio.run(_until_told(_play(narrator, port, web, keep_open)))
    raise typer.Exit(code)


async def _until_told(playing: Awaitable[Exit]) -> Exit:
    """Run the demo to its end and return the exit code.

    A signal cancels the demo, which then cleans up and returns ABORTED.
    """
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
    proofs: list[str] = []
    try:
        async with running_stage(port, web) as stage:
            _introduce(stage)
            await narrator.pause(4.0 if stage.page else 2.0)
            for number, (scene, title) in enumerate(zip(SCENES, TITLES, strict=True), 1):
                narrator.title(number, title)
                await narrator.pause(0.5)
                proofs.append(await scene(DemoScene(stage, narrator)))
                narrator.seen(proofs[-1])
                await narrator.pause(1.5)
            if keep_open:
                await _stay(stage)
    except (SceneFailed, NotSent) as missed:
        narrator.missed(str(missed))
        typer.echo(f"\nSeen: {len(proofs)} of {len(SCENES)} scenes. What was started has ended.")
        return Exit.FAILED
    _close(narrator, proofs)
    return Exit.DONE


def _introduce(stage: DemoStage) -> None:
    for name, port in stage.ports.items():
        agents = ", ".join(nick for nick, home in AGENTS.items() if home == name)
        typer.echo(f"   {name:<6} {HOST}:{port}   agents: {agents}")
    if stage.page:
        typer.echo(f"   watch  {stage.page}   (logs you in as {YOU}, once)")
    elif stage.no_page:
        typer.echo(f"   The web page did not start: {stage.no_page}")


async def _stay(stage: DemoStage) -> None:
    """Print how to use the running demo from another terminal, and wait until a signal comes."""
    typer.echo("\nAll of it runs until Ctrl-C. From another terminal:")
    typer.echo(f"   export CULTURE_HOME={stage.folder} XDG_RUNTIME_DIR={stage.folder / 'run'}")
    typer.echo(f"   culture status; culture digest --nick {YOU}; culture say --nick {YOU} '#general' hello")
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


def _close(narrator: Narrator, proofs: list[str]) -> None:
    typer.echo(f"\nSeen in {narrator.elapsed:.0f} s: {len(proofs)} of {len(SCENES)} scenes, each proven by the ledger.")
    typer.echo("Everything has ended, and its folder is removed. Your own: `culture up`.")
