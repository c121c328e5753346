"""The web page of the demonstration."""

from pathlib import Path

from culture.cli.options import Choices
from culture.cli.web import process
from culture.lib.process.background import EndedEarly
from culture.server.errors import StartError

LOGIN_MINUTES = 60


class NoPage(Exception):
    """The page is not to be had; the text says why."""


def show(config: Path, person: str) -> str:
    """Start the page of a server; the link that logs the person in, once."""
    settings = Choices(config).load().config
    try:
        process.start(settings.name, ("--config", str(config), "--port", "0"))
    except EndedEarly as early:
        raise NoPage(early.text.splitlines()[-1]) from None
    except StartError as error:
        raise NoPage(str(error)) from None
    return process.link(settings, person, LOGIN_MINUTES)
