"""An agent that takes its name off what it starts is still no person."""

import json
import shlex
import sys

from tests.cli.agents.conftest import NICK, Machine
from tests.cli.shell import ROOT
from tests.support.agents import playbook
from tests.support.waiting import until

RAW = """
import json, socket, sys
wire = socket.socket(socket.AF_UNIX)
wire.connect(sys.argv[1])
wire.sendall(json.dumps({"type": sys.argv[2], "id": "1"}).encode() + b"\\n")
print(wire.makefile().readline(), end="")
"""


async def test_without_its_name_it_neither_answers_nor_speaks_nor_resumes(machine: Machine) -> None:
    folder = machine.shell.folder
    (folder / "raw.py").write_text(RAW, encoding="utf-8")
    said = folder / "said"
    variables = {
        "PYTHONPATH": ROOT,
        "HOME": folder,
        "CULTURE_HOME": machine.home,
        "XDG_RUNTIME_DIR": machine.shell.environment["XDG_RUNTIME_DIR"],
        "LOGNAME": "ori",
    }
    bare = "env -i " + shlex.join([*(f"{name}={value}" for name, value in variables.items()), sys.executable])
    socket = f"{machine.shell.environment['XDG_RUNTIME_DIR']}/culture-{NICK}.sock"
    commands = [f"-m culture {words}" for words in (f"answer {NICK} q1 yes", f"say {NICK} hello", f"resume {NICK}")]
    lines = [f"{bare} {command} >> {said} 2>&1" for command in commands]
    lines += [f"{bare} {folder}/raw.py {socket} {word} >> {said}" for word in ("resume", "status")]
    steps = [{"run": {"command": "; ".join(lines), "timeout": 60}}, {"say": "done"}]
    machine.agents({"nick": NICK, "playbook": playbook(folder / "book", [{"when": "pose", "steps": steps}])})
    await machine.run("start", NICK)
    assert (await machine.run("say", NICK, "pose")).code == 0
    await until(lambda: said.exists() and said.read_text().count("\n") >= 5, patience=60.0)
    *refused, resume, status = [line for line in said.read_text().splitlines() if line]
    assert len(refused) == 3 and all(f"you are {NICK}" in line for line in refused)
    assert f"you are {NICK}" in json.loads(resume)["error"]
    assert json.loads(status)["ok"]
