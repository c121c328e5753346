"""Starting, dying and taking up again, with the real Codex."""

import json
import os
import re
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from culture.clients.codex.app_server import AppServer
from culture.clients.shared.errors import WrongConfiguration
from culture.clients.shared.turn import AgentDied
from tests.clients.codex.conftest import QUIET
from tests.clients.conformance import there
from tests.clients.lifecycle import goes_on_after_a_kill, stops_while_the_model_hangs
from tests.clients.watched import Launch, Watched
from tests.support import marmot
from tests.support.model import Model
from tests.support.waiting import until


@pytest.mark.requirement("G07", "G19")
async def test_killed_in_a_turn_it_says_so_and_goes_on_with_what_it_knew(launch: Launch, model: Model) -> None:
    await goes_on_after_a_kill(launch, model)


@pytest.mark.fault("E6")
async def test_a_command_does_not_outlive_a_killed_agent(codex: Watched, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    await codex.runner.send_prompt(f"[[bash touch {begun}; exec sleep 613]]")
    await there(begun)
    os.kill(codex.program(), signal.SIGKILL)
    await codex.exited()
    await codex.runner.stop()
    assert codex.processes() == {}


@pytest.mark.fault("E6")
async def test_an_mcp_server_does_not_outlive_a_killed_agent(launch: Launch, codex_home: Path, tmp_path: Path) -> None:
    """One that does not end by itself when nobody talks to it any more."""
    stubborn = f"{shlex.quote(sys.executable)} {shlex.quote(marmot.__file__)} {tmp_path}/called; exec sleep 614"
    with (codex_home / "config.toml").open("a") as settings:
        settings.write(f'[mcp_servers.marmot]\ncommand = "sh"\nargs = ["-c", {json.dumps(stubborn)}]\n')
    agent = launch()
    await agent.runner.start()
    await agent.turn("[[say hello]]")
    os.kill(agent.program(), signal.SIGKILL)
    await agent.exited()
    await until(lambda: "sleep 614 " in agent.processes().values())
    await agent.runner.stop()
    assert agent.processes() == {}


async def test_a_model_that_hangs_does_not_hold_up_a_stop(codex: Watched, model: Model) -> None:
    await stops_while_the_model_hangs(codex, model)


@pytest.mark.requirement("G19")
@pytest.mark.parametrize("gone", ["01a1e585-028d-7a11-b51d-cbc7510a7be0", "no-session-at-all"])
async def test_a_thread_that_is_gone_is_replaced_and_the_agent_knows(
    launch: Launch, model: Model, gone: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent = launch(resume=gone)
    await agent.runner.start()
    assert (await agent.turn("[[say fresh]]")).text == "fresh"
    assert agent.runner.session_id not in (None, gone)
    assert f"session {gone} is gone" in model.journal.requests[-1].everything
    assert f"session {gone} is gone" in caplog.text


async def test_its_commands_know_the_harness_whatever_its_owner_lets_through(launch: Launch, codex_home: Path) -> None:
    with (codex_home / "config.toml").open("a") as settings:
        settings.write('[shell_environment_policy]\ninherit = "core"\nset = { MARMOT = "whistles" }\n')
    agent = launch()
    await agent.runner.start()
    directory = agent.runner.setup.directory
    await agent.turn("[[bash echo $CULTURE_NICK $CULTURE_TOKEN $MARMOT > seen]] [[say done]]")
    assert (directory / "seen").read_text().split() == ["spark-codex", agent.token, "whistles"]


@pytest.mark.parametrize("variable", ["CODEX_API_KEY", "OPENAI_API_KEY"])
async def test_a_key_of_the_environment_is_used_and_not_kept(
    launch: Launch, model: Model, codex_home: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    (codex_home / "auth.json").unlink()
    monkeypatch.setenv(variable, "sk-of-the-environment")
    agent = launch()
    await agent.runner.start()
    assert (await agent.turn("[[say paid]]")).text == "paid"
    assert model.journal.requests[-1].headers["authorization"] == "Bearer sk-of-the-environment"
    assert not (codex_home / "auth.json").exists()


@pytest.mark.fault("E3")
async def test_without_a_login_it_says_how_to_get_one(launch: Launch, codex_home: Path) -> None:
    (codex_home / "auth.json").unlink()
    (codex_home / "config.toml").write_text(QUIET)
    agent = launch()
    with pytest.raises(WrongConfiguration, match=r"not logged in: `.*codex'? login`.*CODEX_API_KEY"):
        await agent.runner.start()
    await agent.runner.stop()
    assert agent.processes() == {}


async def test_a_model_of_one_s_own_may_want_no_login(launch: Launch, codex_home: Path) -> None:
    (codex_home / "auth.json").unlink()
    agent = launch()
    await agent.runner.start()
    assert (await agent.turn("[[say for free]]")).text == "for free"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ('model_provider = "nowhere"\n', "Model provider `nowhere` not found"),
        ("= no toml\n", "config.toml:1:1"),
        ('sandbox_mode = "none"\n', "unknown variant `none`"),
    ],
    ids=["provider", "toml", "value"],
)
async def test_settings_that_codex_does_not_understand_are_named(
    launch: Launch, codex_home: Path, wrong: str, told: str
) -> None:
    settings = codex_home / "config.toml"
    settings.write_text(wrong + settings.read_text())
    with pytest.raises(WrongConfiguration, match=re.escape(told)):
        await launch().runner.start()


async def test_last_words_are_kept_and_no_more(tmp_path: Path) -> None:
    async def nobody(*_what: Any) -> None:
        pass

    script = "yes | head -c 3000000 | tr '\\n' y >&2; echo >&2; echo the end >&2; exit 3"
    server = AppServer(nobody, nobody, nobody)
    with pytest.raises(AgentDied) as death:
        await server.start(["sh", "-c", script], tmp_path, {})
    await server.leave()
    assert death.value.code == 3 and len(str(death.value)) < 10_000
