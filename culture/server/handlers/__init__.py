"""What each verb does, one module per topic."""

from culture.server.handlers import (
    capability,
    channels,
    help,
    information,
    listing,
    messaging,
    modes,
    operators,
    presence,
    registration,
    who,
    whois,
)

HANDLERS = (
    registration,
    capability,
    channels,
    messaging,
    modes,
    operators,
    presence,
    who,
    whois,
    listing,
    information,
    help,
)
