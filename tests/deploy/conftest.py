"""Fixtures of the deployment's tests."""

from tests.orchestrator.conftest import project as project
