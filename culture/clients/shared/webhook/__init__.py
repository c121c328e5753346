"""Telling people what an agent cannot tell them itself: in the channel for alerts, and at an address on the web."""

from culture.clients.shared.webhook import texts
from culture.clients.shared.webhook.client import Fire, WebhookClient

__all__ = ["Fire", "WebhookClient", "texts"]
