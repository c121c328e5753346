"""What is installed of the scripted agent: it is a part of culture itself."""

from culture import __version__
from culture.clients.shared.programs import Found, Login


def found() -> tuple[Found, ...]:
    """The program that plays playbooks; it has no model, so that it needs no login."""
    return (Found("culture", __version__, Login.NOT_NEEDED),)
