"""Secrets stay where they are: not in a log, not in argv, not in what a command prints (C10)."""

import logging
from pathlib import Path
from typing import NoReturn

import pytest

from culture.config.model import Operator
from culture.server.handlers import authenticate as authenticate_handlers
from tests.cli.shell import Shell
from tests.support.client import connected
from tests.support.people import PASSWORD, accounts_of, authenticate, come_in, plain
from tests.support.servers import Serve

SERVER, OPER, WRONG = "swordfish-server", "swordfish-oper", "swordfish-wrong"
SECRETS = (PASSWORD, SERVER, OPER, WRONG, plain("ori", PASSWORD), plain("ori", WRONG))


def told(text: str) -> list[str]:
    """The secrets that are in a text."""
    return [secret for secret in SECRETS if secret in text]


@pytest.mark.fault("C10")
async def test_no_secret_is_logged_whether_it_is_right_or_wrong(
    tmp_path: Path, serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    """C10: with everything logged that can be."""
    caplog.set_level(logging.DEBUG)
    accounts = accounts_of(tmp_path, "ori")
    operators, register = (Operator(name="root", password=OPER),), {"self_registration": "inside"}
    async with serve(accounts_file=accounts.path, password=SERVER, operators=operators, **register) as ircd:
        for given, answer in ((WRONG, "904"), (PASSWORD, "903")):
            async with connected(ircd.port) as ori:
                assert (await authenticate(ori, "PLAIN", plain("ori", given))).verb == answer
        for given in (WRONG, f"ori:{WRONG}", f":{WRONG}"):
            async with connected(ircd.port) as stranger:
                stranger.send(f"PASS {given}")
                stranger.send("NICK spark-stranger")
                stranger.send("USER u 0 * :U")
                assert "464" in [each.verb for each in await stranger.ended()]
        for given in (SERVER, f"ori:{PASSWORD}"):
            async with connected(ircd.port) as ori:
                ori.send(f"PASS :{given}")
                await come_in(ori, "spark-ori" if ":" in given else "spark-guest")
                ori.send(f"REGISTER * * {WRONG}")
                for word in (WRONG, OPER):
                    ori.send(f"OPER root {word}")
                await ori.expect("381")
                shown = [str(each) for line in ("STATS o", "INFO", "WHOIS spark-ori") for each in await ori.ask(line)]
                assert told("\n".join(shown)) == []
    assert "root" in caplog.text, "something was logged"
    assert told(caplog.text) == []


@pytest.mark.fault("C10")
async def test_no_secret_is_logged_when_we_fail(
    tmp_path: Path, serve: Serve, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C10: a bug in the middle of a login is logged with its traceback, not with the line that set it off."""

    def fail(*_: object) -> NoReturn:
        raise RuntimeError("a bug")

    monkeypatch.setattr(authenticate_handlers, "check_password", fail)
    accounts = accounts_of(tmp_path, "ori")
    async with serve(accounts_file=accounts.path) as ircd, connected(ircd.port) as ori:
        ori.send(f"PASS ori:{PASSWORD}")
        assert [each.verb for each in await ori.ended()] == ["ERROR"]
    assert "PASS by * failed" in caplog.text and "RuntimeError: a bug" in caplog.text
    assert told(caplog.text) == []


@pytest.mark.fault("C10")
async def test_no_secret_is_in_a_process_or_in_what_it_prints(tmp_path: Path) -> None:
    """C10: argv and environment of the running server, its log and files, and what the commands about it say."""
    shell = Shell(tmp_path)
    try:
        config = shell.write(
            f"name: spark\npassword: {SERVER}\nlisten: [{{port: 0}}]\noperators: [{{name: root, password: {OPER}}}]\n"
        )
        config.chmod(0o600)
        started = await shell.run("server", "start")
        note = shell.note()
        assert started.code == 0 and note is not None, started.err
        process = Path("/proc") / str(note.pid)
        seen = [(process / name).read_text(errors="replace") for name in ("cmdline", "environ") if process.exists()]
        async with connected(note.addresses[0][1]) as stranger:
            stranger.send(f"PASS {WRONG}")
            stranger.send("NICK spark-stranger")
            stranger.send("USER u 0 * :U")
            await stranger.ended()
        for words in (("server", "config"), ("server", "status"), ("account", "list"), ("server", "restart")):
            result = await shell.run(*words)
            assert result.code == 0, result.err
            seen += [result.out, result.err]
        await shell.run("server", "stop")
        kept = [path for path in shell.home.rglob("*") if path.is_file() and path != config]
        assert {"spark.log"} <= {path.name for path in kept}
        seen += [path.read_text(errors="replace") for path in kept]
        assert "operators[0].password" in "".join(seen)
        assert told("\n".join(seen)) == []
    finally:
        await shell.close()
