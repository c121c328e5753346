"""The names that the founding documents spell out lead somewhere."""

import inspect
import subprocess
import sys
from importlib import import_module

import pytest

from culture.clients.shared.base import AgentRunnerBase, SupervisorBase
from culture.clients.shared.message_buffer import MessageBuffer
from culture.clients.shared.requests import VERBS
from culture.transport import IRCTransport

COMPONENTS = {
    "culture.clients.claude.daemon": "AgentDaemon",
    "culture.clients.claude.irc_transport": "IRCTransport",
    "culture.clients.claude.webhook": "WebhookClient",
    "culture.clients.claude.socket_server": "SocketServer",
    "culture.clients.claude.agent_runner": "AgentRunner",
    "culture.clients.claude.config": "load_agents",
    "culture.clients.claude.supervisor": "ClaudeSupervisor",
    "culture.clients.shared.supervisor": "Supervisor",
    "culture.clients.shared.bus": "MessageBus",
}
REQUESTS = {
    "irc_send": {"channel", "message"},
    "irc_read": {"channel", "limit"},
    "irc_ask": {"channel", "question", "timeout"},
    "irc_join": {"channel"},
    "irc_part": {"channel"},
    "irc_channels": set(),
    "irc_who": {"channel"},
    "compact": set(),
    "clear": set(),
    "set_directory": {"path"},
    "status": set(),
    "pause": set(),
    "resume": set(),
    "shutdown": set(),
}


@pytest.mark.requirement("F31", "L04")
@pytest.mark.parametrize("module", COMPONENTS)
def test_a_component_is_found_where_it_is_documented(module: str) -> None:
    assert callable(getattr(import_module(module), COMPONENTS[module]))


@pytest.mark.requirement("F30")
def test_the_methods_of_the_table_exist() -> None:
    for name in ("send_privmsg", "join_channel", "part_channel", "send_who"):
        assert inspect.iscoroutinefunction(getattr(IRCTransport, name))
    assert MessageBuffer(500).read("#general", 50) == []


@pytest.mark.requirement("G01", "G02", "G20", "I08")
def test_the_contract_has_exactly_its_members() -> None:
    assert AgentRunnerBase.__abstractmethods__ == {"start", "stop", "send_prompt", "is_running", "session_id"}
    assert SupervisorBase.__abstractmethods__ == {"start", "stop", "observe"}
    for owner, names in (
        (AgentRunnerBase, ("on_message", "on_exit")),
        (SupervisorBase, ("on_whisper", "on_escalation")),
    ):
        assert all(vars(owner)[name] is None for name in names)
    assert str(inspect.signature(AgentRunnerBase.start)).startswith("(self, initial_prompt: str = '')")


@pytest.mark.requirement("H31", "H30")
def test_the_requests_have_the_documented_fields() -> None:
    assert REQUESTS.keys() <= VERBS.keys()
    for type, fields in REQUESTS.items():
        added = {"irc_ask": {"options", "again", "reply"}, "pause": {"soon"}, "resume": {"reason"}}.get(type, set())
        assert set(VERBS[type].fields) == fields | added, type


@pytest.mark.requirement("H24", "H32")
@pytest.mark.parametrize("package", ["culture.clients.claude.skill", "culture.clients.shared.skill"])
def test_both_paths_of_the_skill_work(package: str) -> None:
    helped = subprocess.run(
        [sys.executable, "-m", f"{package}.irc_client", "--help"], capture_output=True, text=True, check=True
    )
    for command in ("send", "read", "ask", "join", "part", "channels", "who", "compact", "clear"):
        assert command in helped.stdout
    tools = import_module(f"{package}.irc")
    assert inspect.signature(tools.irc_read).parameters["limit"].default == 50
    assert inspect.signature(tools.irc_ask).parameters["timeout"].default == 300
    for name in ("irc_send", "irc_join", "irc_part", "irc_channels", "irc_who", "set_directory"):
        assert callable(getattr(tools, name))
    assert callable(tools.compact_context) and callable(tools.clear_context)


@pytest.mark.requirement("L17")
def test_the_daemon_is_an_entry_point() -> None:
    told = subprocess.run([sys.executable, "-m", "culture.clients.claude.daemon"], capture_output=True, text=True)
    assert told.returncode == 2
    assert told.stderr.startswith("usage: ")
