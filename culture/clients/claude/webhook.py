"""Alerts under the name that the founding documents give them."""

from culture.clients.shared.webhook import WebhookClient

__all__ = ["WebhookClient"]
