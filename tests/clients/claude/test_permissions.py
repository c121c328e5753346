"""What Claude Code may not do without asking is asked of people, who answer from their own clients."""

import json
import shutil
from pathlib import Path

import pytest

from culture.server.ircd import IRCd
from tests.clients.claude.rooms import GENERAL, NICK, SKILL, configured, wendy_at_weechat
from tests.clients.shared.test_daemon import answered
from tests.realclients.irssi import irssi
from tests.support.agents import running
from tests.support.client import registered
from tests.support.model import Model
from tests.support.waiting import until

ASKS = {"permission_mode": "default"}
TRUST = {"trust": {"humans": "always", "agents": "never"}}


def write(home: Path, name: str) -> str:
    """The model wants a file written."""
    return f"[[call Write {json.dumps({'file_path': str(home / 'work' / name), 'content': 'x'})}]]"


@pytest.mark.fault("F11", "F12")
@pytest.mark.requirement("J11", "J13")
async def test_a_permission_prompt_is_a_question_that_a_person_answers(ircd: IRCd, home: Path, model: Model) -> None:
    config = configured(ircd, home, rules=TRUST, **ASKS)
    touch = home / "work" / "made"
    async with registered(ircd.port, "spark-ori") as ori, registered(ircd.port, "spark-bob") as bob:
        await bob.ask("MODE spark-bob +B")
        await ori.join(GENERAL)
        await bob.join(GENERAL)
        async with running(config, NICK) as daemon:
            ori.send(f"PRIVMSG {GENERAL} :@{NICK} [[bash touch made]] [[say it is done]]")
            assert (await answered(ori, GENERAL)).startswith('[QUESTION] Task "')
            assert await answered(ori, GENERAL) == '"Bash: touch made Proceed? [y/N]"'
            assert await answered(ori, GENERAL) == f"Waiting for response. Reply with: @{NICK} yes/no/abort"
            bob.send(f"PRIVMSG {GENERAL} :@{NICK} yes")
            refused = await bob.expect("NOTICE", "spark-bob", where=lambda each: "q1" in each.params[1])
            assert "only people may answer" in refused.params[1]
            ori.send(f"PRIVMSG {GENERAL} :@{NICK} always")
            await ori.expect("NOTICE", "spark-ori", where=lambda each: "always needs a pattern" in each.params[1])
            assert not touch.exists()
            ori.send(f"PRIVMSG {GENERAL} :@{NICK} always Bash(touch:*)")
            assert await answered(ori, GENERAL) == "it is done"
            assert touch.exists()
            ori.send(f"PRIVMSG {GENERAL} :@{NICK} [[bash touch again]] [[say once more]]")
            assert await answered(ori, GENERAL) == "once more"
            assert (home / "work" / "again").exists()
            ori.send(f"PRIVMSG {GENERAL} :@{NICK} [[bash rm made]] [[say I was not allowed]]")
            assert '"Bash: rm made Proceed?' in [await answered(ori, GENERAL), await answered(ori, GENERAL)][1]
            ori.send(f"PRIVMSG {GENERAL} :@{NICK} no, keep it")
            await answered(ori, GENERAL)
            assert await answered(ori, GENERAL) == "I was not allowed"
            assert touch.exists()
            assert 'denied by spark-ori: "no, keep it"' in model.journal.requests[-1].results[-1]
            # Claude Code names files by their whole path.
            ori.send(f"PRIVMSG {GENERAL} :@{NICK} {write(home, 'docs/a')} [[say written]]")
            assert "work/docs/a [" in [await answered(ori, GENERAL), await answered(ori, GENERAL)][1]
            ori.send(f"PRIVMSG {GENERAL} :@{NICK} always Write(docs/*)")
            while (said := await answered(ori, GENERAL)) != "written":
                assert said.startswith(("  ", "Waiting for response."))
            ori.send(f"PRIVMSG {GENERAL} :@{NICK} {write(home, 'docs/b')} [[say that too]]")
            assert await answered(ori, GENERAL) == "that too"
            assert sorted(each.name for each in (home / "work" / "docs").iterdir()) == ["a", "b"]
            await until(lambda: not daemon.work.busy)
            assert daemon.questions.open == []


@pytest.mark.requirement("H08", "J13", "J15")
async def test_a_question_is_answered_from_weechat_and_not_by_an_agent(
    ircd: IRCd, home: Path, model: Model, tmp_path: Path
) -> None:
    config = configured(ircd, home, rules=TRUST)
    async with wendy_at_weechat(ircd, tmp_path) as wendy, registered(ircd.port, "spark-bob") as bob:
        await bob.ask("MODE spark-bob +B")
        await bob.join(GENERAL)
        async with running(config, NICK) as daemon:
            await wendy.shows(rf"{NICK} \(.*\) has joined", GENERAL)
            asking = f'[[bash {SKILL} ask "{GENERAL}" --options yes/no "Delete 47 files?"]] [[say then I do]]'
            wendy.type(f"@{NICK} clean up {asking}", GENERAL)
            await wendy.shows(rf"^.?{NICK} \[QUESTION\] Delete 47 files\?$", GENERAL)
            bob.send(f"PRIVMSG {GENERAL} :@{NICK} yes")
            refused = await bob.expect("NOTICE", "spark-bob", where=lambda each: "q1" in each.params[1])
            assert "only people may answer" in refused.params[1]
            wendy.type(f"@{NICK} looks safe, yes", GENERAL)
            request = await model.journal.arrival("clean up", results=1)
            assert request.results[0].splitlines()[0] == "looks safe, yes"
            await until(lambda: not daemon.work.busy)
            assert daemon.inbox.counts() == (0, 0)


@pytest.mark.fault("F12")
async def test_a_permission_prompt_is_answered_from_irssi(ircd: IRCd, home: Path, model: Model, tmp_path: Path) -> None:
    if shutil.which("irssi") is None or shutil.which("tmux") is None:
        pytest.skip("not installed: irssi and tmux")
    config = configured(ircd, home, rules=TRUST, **ASKS)
    async with irssi(tmp_path / "irssi", "-c", "127.0.0.1", "-p", str(ircd.port), "-n", "spark-iris") as iris:
        await iris.shows("End of /MOTD|MOTD File is missing|Welcome")
        await iris.type(f"/join {GENERAL}")
        await iris.shows("has joined #general")
        async with running(config, NICK) as daemon:
            await iris.shows(f"{NICK} .*has joined #general")
            await iris.type(f"@{NICK} [[bash touch made]] [[say it is done]]")
            await iris.shows(rf"<.?{NICK}> Waiting for response\. Reply with: @{NICK} yes/no/abort")
            await iris.type(f"@{NICK} yes")
            await iris.shows(rf"<.?{NICK}> it is done")
            assert (home / "work" / "made").exists()
            assert daemon.questions.open == []
