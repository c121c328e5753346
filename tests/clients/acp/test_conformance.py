"""An agent behind ACP does what every agent must: a little one all of it, OpenCode what is costly to get wrong."""

from pathlib import Path

import pytest

from culture.clients.shared.turn import Can
from tests.clients.acp.kit import AcpKit, LittleKit
from tests.clients.conformance import (
    ClearContract,
    Kit,
    PermitContract,
    ProcessContract,
    QueuedContract,
    Record,
    ResumeContract,
    RunnerContract,
    add_marmot,
    asks_and_obeys,
    bounded,
    breaks_off_and_goes_on,
    clears,
    compacts,
    ends,
    fails_and_goes_on,
    goes_on,
    is_asked,
    queued,
    uses_marmot,
)
from tests.support.model import Model

pytest.importorskip("acp", reason="the extra culture[acp] is not installed")


@pytest.mark.fault("E37")
class TestLittleAgent(RunnerContract, ProcessContract, QueuedContract, ResumeContract, ClearContract, PermitContract):
    @pytest.fixture
    def kit(self, tmp_path: Path) -> Kit:
        return LittleKit(tmp_path)


@pytest.mark.requirement("G15", "G16")
class TestOpenCode:
    """Some of the contract in few starts, as each takes seconds; all of it is in ``make proof NAME=agentprograms``."""

    @pytest.fixture
    def kit(self, opencode: list[str], model: Model, tmp_path: Path) -> AcpKit:
        return AcpKit(tmp_path, model, opencode)

    @pytest.mark.matrix
    @pytest.mark.timeout(120)
    @pytest.mark.requirement("G08", "G19")
    async def test_a_session_with_all_that_can_happen_is_taken_up_again(self, kit: AcpKit) -> None:
        add_marmot(kit)
        runner = queued(kit, Can.CLEAR)
        record = Record(runner)
        await runner.start()
        await uses_marmot(kit, runner, record)
        await fails_and_goes_on(kit, runner, record)
        await breaks_off_and_goes_on(kit, runner, record)
        await compacts(kit, runner, record)
        await clears(runner, record)
        session = await ends(kit, runner, record, "crash")
        later = kit.asking(resume=session)
        asked = is_asked(later)
        record = await goes_on(kit, later, session, "crash")
        await asks_and_obeys(kit, later, record, asked)
        await bounded(later)
