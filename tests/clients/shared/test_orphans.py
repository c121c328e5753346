"""What an agent leaves behind stays its daemon's: it is known as an agent's, and reaped."""

import json
import os
import shlex
import sys
from pathlib import Path

from culture.protocol.vocabulary import UserClass
from culture.server.auth.accounts import new_account
from culture.server.ircd import IRCd
from tests.cli.shell import ROOT
from tests.support.agents import agents_yaml, playbook, process
from tests.support.client import registered
from tests.support.waiting import until

NICK = "spark-claude"
# Loses its environment and its parent, then asks for the nick of the person whose programs need no login.
ORPHAN = """
import json, os, socket, sys
parent = os.getpid()
if os.fork():
    os._exit(0)
os.setsid()
while os.getppid() == parent:
    pass
from culture.config.process_owner import own_agent
wire = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
wire.sendall(b"NICK spark-ori\\r\\nUSER ori 0 * :ori\\r\\n")
answer = next(line.strip() for line in wire.makefile() if line.split()[1] in ("001", "433"))
with open(sys.argv[2] + ".new", "w") as file:
    json.dump([answer, own_agent(), os.getpid()], file)
os.rename(sys.argv[2] + ".new", sys.argv[2])
"""


async def test_an_orphan_without_environment_and_parent_is_still_an_agents(
    ircd: IRCd, home: Path, tmp_path: Path
) -> None:
    ircd.parts.accounts.add(new_account("ori", UserClass.HUMAN, user=str(os.getuid()), verifier=None))
    told, program = tmp_path / "told", tmp_path / "orphan.py"
    program.write_text(ORPHAN, encoding="utf-8")
    command = f"env -i PYTHONPATH={shlex.quote(str(ROOT))} {shlex.quote(sys.executable)} {program} {ircd.port} {told}"
    rules = [{"when": "hide", "steps": [{"run": command}, {"say": "done"}]}]
    agents_yaml(home, ircd.port, {"nick": NICK, "playbook": playbook(home, rules)})
    async with registered(ircd.port, "spark-ori") as ori, process(NICK, home):
        ori.send("JOIN #general")
        await ori.expect("JOIN", "#general", where=lambda line: line.source.startswith(NICK))
        ori.send(f"PRIVMSG {NICK} :hide")
        await until(told.exists)
        answer, agent, pid = json.loads(told.read_text(encoding="utf-8"))
        assert "you are a process of an agent: use irc_client" in answer
        assert agent == "an agent"
        await until(lambda: not Path(f"/proc/{pid}").exists())
