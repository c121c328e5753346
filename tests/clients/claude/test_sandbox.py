"""The real Claude Code in its sandbox: it works there, and reaches nothing that it was not given."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from culture.config import paths
from culture.server.ircd import IRCd
from tests.clients.claude.rooms import GENERAL, NICK, SKILL, working
from tests.clients.shared.sandbox.conftest import needs_bwrap
from tests.clients.shared.test_daemon import answered
from tests.support.model import Model
from tests.support.waiting import until

pytestmark = needs_bwrap

CONNECT = "import socket, sys; print(socket.create_connection((sys.argv[1], int(sys.argv[2])), 9).recv(99))"
FETCH = "import sys, urllib.request as http; print(http.urlopen(sys.argv[1], timeout=9).read())"


async def test_claude_works_in_its_sandbox_and_reaches_nothing_else(
    ircd: IRCd, home: Path, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = tmp_path / "home"
    (owner / ".ssh").mkdir()
    (owner / ".ssh" / "id").write_text("the owner's key")
    paths.accounts_file().write_text("the owner's accounts")
    monkeypatch.setenv("GITHUB_TOKEN", "the owner's token")
    # That it is contained, which Claude Code asks for as root, is for the sandbox to say.
    monkeypatch.delenv("IS_SANDBOX", raising=False)
    sandbox = {"kind": "bwrap", "hosts": [urlsplit(model.url).netloc]}
    commands = {
        "file": "echo made by $CULTURE_NICK > made && cat made",
        "client": f'{SKILL} send "{GENERAL}" "from inside"',
        "key": "cat ~/.ssh/id",
        "accounts": f"cat {paths.accounts_file()}",
        "home": "ls -A ~ | sort | xargs",
        "variables": "env | grep -c 'owner.s token'",
        "server": f'python3 -c "{CONNECT}" 127.0.0.1 {ircd.port} 2>&1',
        "server by the proxy": f'NO_PROXY= no_proxy= python3 -c "{FETCH}" http://127.0.0.1:{ircd.port} 2>&1',
        "host": f'python3 -c "{FETCH}" https://example.com 2>&1',
        "address": f'python3 -c "{CONNECT}" 93.184.216.34 443 2>&1',
    }
    steps = tmp_path / "steps"
    steps.write_text(" ".join(f"[[bash {command}]]" for command in commands.values()))
    async with working(ircd, home, sandbox=sandbox) as (daemon, ori):
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} work [[script {steps}]]")
        await ori.expect("PRIVMSG", GENERAL, "from inside")
        await until(lambda: not daemon.work.busy)
        session = daemon.notes.session
        results = dict(zip(commands, model.journal.requests[-1].results, strict=True))
    assert (home / "work" / "made").read_text() == f"made by {NICK}\n"
    assert results["client"].startswith(f"Sent to {GENERAL}.")
    assert results["home"].splitlines()[0] == ".agents .claude .claude.json"
    assert results["variables"].splitlines()[0] == "0"
    for name, said in {
        "key": "No such file or directory",
        "accounts": "No such file or directory",
        "server": "Connection refused",
        "server by the proxy": "403",
        "host": "403",
        "address": "Network is unreachable",
    }.items():
        assert results[name].startswith("Exit code 1"), name
        assert said in results[name], name
    assert not any("the owner's" in request.everything for request in model.journal.requests)
    # What it remembers outlasts the sandbox.
    async with working(ircd, home, sandbox=sandbox) as (daemon, ori):
        ori.send(f"PRIVMSG {GENERAL} :@{NICK} and now? [[say still here]]")
        assert await answered(ori, GENERAL) == "still here"
        assert daemon.notes.session == session
    assert "from inside" in model.journal.requests[-1].everything
