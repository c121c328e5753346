"""Copilot's runner does what every runner must."""

from pathlib import Path

import pytest

pytest.importorskip("copilot", reason="the extra culture[copilot] is not installed")

from tests.clients.conformance import Kit, ProcessContract, RunnerContract
from tests.clients.copilot.kit import CopilotKit
from tests.support.model import Model


@pytest.mark.fault("E37")
class TestCopilot(RunnerContract, ProcessContract):
    @pytest.fixture
    def kit(self, environment: None, model: Model, tmp_path: Path) -> Kit:
        return CopilotKit(tmp_path, model)
