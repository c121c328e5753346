"""The options that say which part of the history is meant."""

from typing import Annotated

import typer

from culture.cli import amounts

Channel = Annotated[
    list[str] | None,
    typer.Option("--channel", metavar="CHANNEL", help="Of this channel alone; may be repeated."),
]
Since = Annotated[
    int | None,
    typer.Option("--since", metavar="DATE", parser=amounts.option(amounts.moment), help="Not before this date (UTC)."),
]
Until = Annotated[
    int | None,
    typer.Option("--until", metavar="DATE", parser=amounts.option(amounts.moment), help="Before this date (UTC)."),
]
Private = Annotated[bool, typer.Option("--private", help="Private conversations too.")]
