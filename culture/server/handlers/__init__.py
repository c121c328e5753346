"""What each verb does, one module per topic."""

from culture.server.handlers import (
    capability,
    channels,
    help,
    information,
    listing,
    messaging,
    modes,
    monitoring,
    operators,
    presence,
    registration,
    renaming,
    who,
    whois,
)

HANDLERS = (
    registration,
    capability,
    channels,
    renaming,
    messaging,
    modes,
    operators,
    presence,
    monitoring,
    who,
    whois,
    listing,
    information,
    help,
)
