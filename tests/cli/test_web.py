"""``culture web``: the page as a process of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from culture.cli.app import app
from tests.support.people import PASSWORD


class Commands:
    """The command line in a home folder of its own; what it starts are processes of their own."""

    def __call__(self, *words: str, code: int = 0, said: str | None = None) -> str:
        done = CliRunner().invoke(app, list(words), input=said)
        assert done.exit_code == code, done.output
        return done.output

    def start(self, what: str) -> None:
        """Start something that outlives the command."""
        subprocess.run([sys.executable, "-m", "culture", what, "start"], check=True, capture_output=True, timeout=50)


@pytest.fixture
def culture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Commands]:
    (tmp_path / "culture.yaml").write_text(
        "name: spark\nlisten: [{port: 0}]\nweb: {port: 0}\nhistory: {semantic: {enabled: false}}\n", encoding="utf-8"
    )
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path))
    commands = Commands()
    try:
        yield commands
    finally:
        commands("web", "stop")
        commands("server", "stop")


def test_the_page_is_shown_lets_in_and_throws_out(culture: Commands, tmp_path: Path) -> None:
    culture("account", "add", "ori", "--password-stdin", said=f"{PASSWORD}\n")
    culture.start("server")
    assert "is not running" in culture("web", "status", code=1)
    assert "is not running" in culture("web", "link", "ori", code=1)
    culture.start("web")
    assert "is running already" in culture("web", "start", code=1)
    url = json.loads(culture("web", "status", "--json"))["url"]
    link = culture("web", "link", "ori").strip()
    assert link.startswith(f"{url}/login/")
    with httpx.Client(base_url=url, timeout=20) as browser:
        token = browser.get(link).text.split('name="csrf" content="')[1].split('"')[0]
        answer = browser.post(link, data={"csrf": token}, headers={"Origin": url})
        assert answer.status_code == 303 and browser.get("/rooms").status_code == 200
        (session,) = json.loads(culture("web", "sessions", "--json"))
        assert session["account"] == "ori" and "culture" not in session
        assert session["id"] in culture("web", "sessions")
        assert "1 session has ended" in culture("web", "revoke", session["id"])
    assert "no session or logged-in account" in culture("web", "revoke", session["id"], code=1)
    assert "Nobody" in culture("web", "sessions")
    assert "Did you mean ori?" in culture("web", "link", "orii", code=1)
    folder = tmp_path / "data" / "spark" / "web"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
    log = (tmp_path / "log" / "spark.web.log").read_text(encoding="utf-8")
    assert link.rpartition("/")[2] not in log and "Traceback" not in log


def test_beyond_this_machine_it_needs_tls(culture: Commands) -> None:
    assert "needs tls" in culture("web", "serve", "--host", "0.0.0.0", code=78)


def test_an_agent_lets_itself_in_as_nobody(culture: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a link it would answer its own questions, and with an invitation it would be a person."""
    culture("account", "add", "ori", "--password-stdin", said=f"{PASSWORD}\n")
    with monkeypatch.context() as agent:
        agent.setenv("CULTURE_NICK", "spark-claude")
        assert "you are spark-claude" in culture("web", "link", "ori", code=4)
        assert "you are spark-claude" in culture("mesh", "invite", "--person", "eve", code=4)
