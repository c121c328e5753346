"""Fixtures of the team's commands."""

from tests.orchestrator.conftest import project as project
