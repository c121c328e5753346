"""Documented import path of the webhook client, which sends alerts."""

from culture.clients.shared.webhook import WebhookClient

__all__ = ["WebhookClient"]
