"""Detection of the scripted agent, which is a part of culture itself."""

from culture import __version__
from culture.clients.shared.programs import Found, Login


def found() -> tuple[Found, ...]:
    """Return one entry: the scripted agent, which is a part of culture and needs no login."""
    return (Found("culture", __version__, Login.NOT_NEEDED),)
