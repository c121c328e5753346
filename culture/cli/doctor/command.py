"""``culture doctor``."""

import time
from typing import Annotated

import typer

from culture.cli.agent_access import open_to_agents, refuse_agents
from culture.cli.doctor.conducting import conduct, mended
from culture.cli.doctor.finding import Severity
from culture.cli.doctor.scene import Scene
from culture.cli.doctor.showing import as_data, as_text, worst
from culture.cli.doctor.table import CHECKS
from culture.protocol.vocabulary import Exit


@open_to_agents
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Everything that was looked at, for programs.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Show also what is well.")] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Put right what can be without loss: modes of files, what crashes left.")
    ] = False,
) -> None:
    """Look at everything that can be wrong, and say what to type.

    Nothing is changed without --fix, and no secret is shown. The exit code is 0
    when nothing is worse than a hint, else 1.
    """
    if fix:
        refuse_agents()
    begun = time.monotonic()
    outcomes = conduct(CHECKS, Scene())
    if fix:
        outcomes = [mended(each) for each in outcomes]
    seconds = time.monotonic() - begun
    typer.echo(as_data(outcomes, seconds) if as_json else as_text(outcomes, seconds, everything=everything))
    if worst(outcomes).weight > Severity.HINT.weight:
        raise typer.Exit(Exit.FAILED)
