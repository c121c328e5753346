"""Completion in bash, zsh and fish: what is offered, without starting a program of ours."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from culture.cli.app import app

AGENTS = """\
server: {host: 127.0.0.1, port: 6667}
agents:
  - nick: spark-bee     # builds
    agent: scripted
  - agent: claude
    nick: "spark-cat"
"""
# What comes when TAB is pressed behind each line; "==" stands behind the answers to one.
_BASH = """
source "$1"; shift
for line; do
    read -ra COMP_WORDS <<< "$line"; [[ $line == *' ' ]] && COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=(); _culture
    printf '%s\\n' "${COMPREPLY[@]}" ==
done
"""
_FISH = """
source $argv[1]
for line in $argv[2..-1]; complete -C $line; echo ==; end
"""
# zsh completes only where somebody types: in a terminal, with a widget that tells what would be offered.
_ZSH = """
zmodload zsh/zpty
script=$1; shift
zpty shell zsh -f -i
zpty -w shell 'PS1=; autoload -U compinit; compinit -D -u'
zpty -w shell "source ${(q)script}"
zpty -w shell 'show() { compstate[insert]=; compstate[list]=; print -rl -- "<<" $offered ">>" }'
zpty -w shell 'compadd() { local -a got; if [[ ${@[1,(i)(-|--)]} == *-[OAD]* ]]; then builtin compadd "$@"; return; fi
  builtin compadd -O got "$@"; offered+=($got); builtin compadd "$@" }'
zpty -w shell 'asked() { offered=(); _main_complete; show }; zle -C asked complete-word asked; bindkey "^T" asked'
zpty -w shell 'print -r -- rea""dy'
zpty -r -m shell found '*ready*'
for line; do
    zpty -n -w shell $'\\C-u'"$line"$'\\C-t'
    zpty -r -m shell found '*<<*>>*'
    found=${found##*<<}; print -r -- ${found%%>>*}; print "=="
done
zpty -d shell
"""
QUESTIONS = (
    "",
    "sta",
    "server ",
    "bridge token ",
    "status --",
    "pause ",
    "logs -n 5 spark-c",
    "agents add x --backend ",
    "say --for ",
    "help ",
    "completion ",
    "restore no",
    "status --config no",
)


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with two agents, and the three scripts."""
    folder = tmp_path_factory.mktemp("completion")
    (folder / ".culture").mkdir()
    (folder / ".culture" / "agents.yaml").write_text(AGENTS, encoding="utf-8")
    (folder / "notes.tgz").touch()
    for shell in ("bash", "zsh", "fish"):
        printed = CliRunner().invoke(app, ["completion", shell])
        assert printed.exit_code == 0, printed.output
        (folder / f"culture.{shell}").write_text(printed.stdout, encoding="utf-8")
    return folder


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_commands_options_and_agents_are_offered(shell: str, scripts: Path) -> None:
    offered = dict(zip(QUESTIONS, answers(shell, scripts), strict=True))
    assert {"up", "status", "server", "help", "completion"} <= offered[""]
    assert offered["sta"] == {"start", "status"}
    assert offered["server "] == {"cert", "start", "stop", "restart", "status", "config"}
    assert offered["bridge token "] == {"add", "code", "list", "revoke"}
    assert {"--json", "--all", "--config"} <= offered["status --"]
    assert offered["pause "] == {"spark-bee", "spark-cat"}
    assert offered["logs -n 5 spark-c"] == {"spark-cat"}
    assert {"claude", "scripted"} <= offered["agents add x --backend "]
    assert offered["say --for "] == {"stored", "delivered", "injected", "answered"}
    assert "exit-codes" in offered["help "]
    assert offered["completion "] == {"bash", "zsh", "fish"}
    assert offered["restore no"] == offered["status --config no"] == {"notes.tgz"}


def answers(shell: str, folder: Path) -> list[set[str]]:
    """What a shell offers behind each of the questions."""
    if shutil.which(shell) is None:
        pytest.skip(f"not installed: {shell}")
    said = [str(folder / f"culture.{shell}"), *(f"culture {question}" for question in QUESTIONS)]
    command = {
        "bash": ["bash", "-c", _BASH, "bash", *said],
        "zsh": ["zsh", "-f", "-c", _ZSH, "zsh", *said],
        "fish": ["fish", "--no-config", "-c", _FISH, *said],
    }[shell]
    # Nothing but the shell's own folder of programs: there is no culture to start.
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    *parts, rest = done.stdout.replace("\r", "").split("==\n")
    assert not rest.strip()
    return [{line.partition("\t")[0].strip() for line in part.splitlines()} - {""} for part in parts]


def test_another_shell_is_refused_with_those_there_are() -> None:
    done = CliRunner().invoke(app, ["completion", "tcsh"])
    assert done.exit_code == 2 and "bash" in done.output


def test_help_and_completion_load_no_other_command() -> None:
    """What is typed all the time is quick: the help of a topic loads neither server nor clients."""
    loaded = _loaded_by("help")
    assert "culture.clients.shared" not in loaded and "culture.server.ircd" not in loaded


@pytest.mark.parametrize(
    ("command", "too_much"),
    [
        (("status",), ("asyncio", "culture.config.model", "culture.config.team", "culture.transport")),
        (("say", "#general", "hi"), ("culture.clients.shared.work", "culture.server.auth", "culture.config.team")),
        (("answer", "spark-bot", "q1", "yes"), ("culture.clients.shared.questions", "culture.server.auth")),
    ],
)
def test_what_is_typed_all_day_loads_only_what_it_needs(
    command: tuple[str, ...], too_much: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CULTURE_HOME", str(tmp_path))
    (tmp_path / "culture.yaml").write_text("{name: spark, listen: [{host: 127.0.0.1, port: 1}]}\n")
    loaded = _loaded_by(*command)
    assert "culture.cli.agents.select_agents" in loaded
    assert not loaded.intersection(too_much)


def _loaded_by(*words: str) -> set[str]:
    """The modules that a command has loaded when it is through."""
    code = (
        f"import sys; sys.argv = {['culture', *words]!r}; import culture.cli as c\n"
        "try: c.main()\nexcept SystemExit: pass\nprint(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())
