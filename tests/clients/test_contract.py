"""The contract of a backend: five members are enough, and the page that says so is true."""

import inspect
import re
from pathlib import Path

import pytest

from culture.clients.shared.base import AgentRunnerBase, SupervisorBase
from culture.clients.shared.turn import RunnerSetup
from tests.clients.conformance import Kit, ProcessContract, RunnerContract

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clients" / "contract.md"


def example(name: str) -> type[AgentRunnerBase]:
    """The class of an example on the page."""
    found = re.search(rf"^```python {name}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None
    names: dict[str, object] = {"__name__": f"contract_{name}"}
    exec(found[1], names)
    runner = names["ProgramRunner"]
    assert isinstance(runner, type) and issubclass(runner, AgentRunnerBase)
    return runner


class ShellKit(Kit):
    """The shell as an agent: it reads a prompt and does what that says."""

    name = "minimal"

    def make(self, resume: str | None = None) -> AgentRunnerBase:
        setup = RunnerSetup("spark-agent", self.folder, self.environment, options={"program": "/bin/sh"})
        return example(self.name)(setup)

    def say(self, text: str) -> str:
        return f"echo '{text}'"

    def run(self, command: str) -> str:
        return f"{command}\necho done"

    def crash(self) -> str:
        return "exit 3"


class QueuedShellKit(ShellKit):
    name = "queued"


@pytest.mark.requirement("G20")
@pytest.mark.fault("E37")
class TestMinimal(RunnerContract, ProcessContract):
    @pytest.fixture
    def kit(self, tmp_path: Path) -> Kit:
        return ShellKit(tmp_path)


@pytest.mark.requirement("G18")
@pytest.mark.fault("E37")
class TestQueued(RunnerContract, ProcessContract):
    @pytest.fixture
    def kit(self, tmp_path: Path) -> Kit:
        return QueuedShellKit(tmp_path)


@pytest.mark.requirement("G01", "G20")
def test_a_runner_has_exactly_the_members_of_the_contract() -> None:
    assert AgentRunnerBase.__abstractmethods__ == {"start", "stop", "send_prompt", "is_running", "session_id"}
    assert isinstance(inspect.getattr_static(AgentRunnerBase, "session_id"), property)
    assert str(inspect.signature(AgentRunnerBase.start)) == "(self, initial_prompt: str = '') -> None"
    assert str(inspect.signature(AgentRunnerBase.send_prompt)) == "(self, text: str) -> None"
    assert all(inspect.iscoroutinefunction(getattr(AgentRunnerBase, name)) for name in ("start", "stop", "send_prompt"))
    assert not inspect.iscoroutinefunction(AgentRunnerBase.is_running)


@pytest.mark.requirement("G20")
def test_a_supervisor_has_exactly_the_members_of_the_contract() -> None:
    assert SupervisorBase.__abstractmethods__ == {"start", "stop", "observe"}
    assert str(inspect.signature(SupervisorBase.observe)) == "(self, turn: dict[str, typing.Any]) -> None"


@pytest.mark.requirement("G02", "G20")
def test_callbacks_are_nothing_until_they_are_set() -> None:
    assert (AgentRunnerBase.on_message, AgentRunnerBase.on_exit) == (None, None)
    assert (SupervisorBase.on_whisper, SupervisorBase.on_escalation) == (None, None)


def test_the_page_names_every_member() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in AgentRunnerBase.__abstractmethods__ | {"on_message", "on_exit"}:
        assert re.search(rf"^\| `(await )?{name}\b", page, re.MULTILINE), name
