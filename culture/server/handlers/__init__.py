"""What each verb does, one module per topic."""

from culture.server.handlers import capability, channels, messaging, registration

HANDLERS = (registration, capability, channels, messaging)
