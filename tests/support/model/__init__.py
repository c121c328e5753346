"""A model server for tests: real agent programs talk to it, and the prompt itself says what it answers."""

from tests.support.model.journal import Journal, Request
from tests.support.model.server import Model, model_server

__all__ = ["Journal", "Model", "Request", "model_server"]
