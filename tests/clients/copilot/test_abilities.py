"""What Copilot's runner can do beyond what every runner must; the other half of its conformance."""

from pathlib import Path

import pytest

pytest.importorskip("copilot", reason="the extra culture[copilot] is not installed")

from tests.clients.conformance import (
    ClearContract,
    CompactContract,
    Kit,
    McpContract,
    PermitContract,
    QueuedContract,
    ResumeContract,
)
from tests.clients.copilot.kit import CopilotKit
from tests.support.model import Model


@pytest.mark.fault("E37")
class TestCopilot(QueuedContract, ResumeContract, ClearContract, CompactContract, PermitContract, McpContract):
    @pytest.fixture
    def kit(self, environment: None, model: Model, tmp_path: Path) -> Kit:
        return CopilotKit(tmp_path, model)
