"""What is installed of the scripted agent: it is a part of culture itself."""

from culture.clients.shared.programs import Found, Login, package_version


def found() -> tuple[Found, ...]:
    """The program that plays playbooks; it has no model, so that it needs no login."""
    return (Found("culture", package_version("culture"), Login.NOT_NEEDED),)
