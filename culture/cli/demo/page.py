"""The web page of the demonstration."""

from pathlib import Path

from culture.cli import webpage
from culture.cli.background import EndedEarly
from culture.cli.choices import Choices
from culture.server.errors import StartError

LOGIN_MINUTES = 60


class NoPage(Exception):
    """The page is not to be had; the text says why."""


def show(config: Path, person: str) -> str:
    """Start the page of a server; the link that logs the person in, once."""
    settings = Choices(config).load().config
    try:
        webpage.start(settings.name, ("--config", str(config), "--port", "0"))
    except EndedEarly as early:
        raise NoPage(early.text.splitlines()[-1]) from None
    except StartError as error:
        raise NoPage(str(error)) from None
    return webpage.link(settings, person, LOGIN_MINUTES)
