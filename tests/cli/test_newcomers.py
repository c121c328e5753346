"""What somebody types who does not know better is answered with what is wrong and what to type."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from culture.cli.app import app
from culture.config.errors import ConfigError

WRONG = {
    "stat": (2, "Did you mean 'start', 'status'"),
    "server strt": (2, "Did you mean 'start'"),
    "status --josn": (2, "--json"),
    "start": (1, "`culture agents add <name>`"),
    "start --all": (1, "`culture agents add <name>`"),
    "status bee": (2, "`culture agents add NAME`"),
    "pause bee": (2, "`culture agents add NAME`"),
    "logs bee": (2, "`culture agents add NAME`"),
    "say": (2, "A channel in quotes ('#general'), or a nick"),
    "say general": (2, "Text to send; - reads it from standard input"),
    "say general hello": (1, "`culture up -d`"),
    "who": (2, "A channel in quotes ('#general'), or a nick"),
    "answer spark-bee q1": (2, "yes, no, abort"),
    "questions deny": (2, "add --older, a NICK or --all"),
    "agents add": (2, "for example build"),
    "agents add a/b": (2, "for example build"),
    "agents add bee --backend gpt": (2, "there are acp, claude, codex, copilot, scripted"),
    "agents add bee --backend scripted --directory nowhere": (1, "is not a folder: create it first"),
    "account token mia": (1, "`culture account list`"),
    "history search": (2, "Words to find; all must occur"),
    "history search x": (1, "stored nothing yet"),
    "mesh join xyz": (2, "Copy all of it, from inv1_ to its end"),
    "mesh join inv1_wrongcode": (2, "`culture mesh invite` on the other machine"),
    "mesh unlink thor": (1, "`culture mesh list`"),
    "digest --since yesterday": (2, "such as 12h or 90d"),
    "team up": (2, "`culture team init`"),
    "wiki read page": (2, "`culture wiki init`"),
    "web link": (1, "`culture account add NAME`"),
    "server start --port 99999": (2, "less than or equal to 65535"),
    "restore nowhere.tgz": (1, "No such file or directory"),
    "completion": (2, "bash, zsh or fish"),
    "help servr": (2, "`culture help server`"),
}


@pytest.mark.parametrize("typed", WRONG)
def test_a_mistake_is_answered_with_what_to_type(typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "CULTURE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    # On another port than anybody's: a server that happens to run here is not meant.
    (tmp_path / "culture.yaml").write_text("name: spark\nlisten: [{port: 1}]\n", encoding="utf-8")
    code, hint = WRONG[typed]
    result = CliRunner().invoke(app, typed.split(), prog_name="culture")
    assert not isinstance(result.exception, ConfigError)
    said = " ".join(result.output.split())
    assert hint in said, result.output
    assert result.exit_code == code
    assert "Traceback" not in said
