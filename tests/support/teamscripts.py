"""What the members of a team do that is killed again and again: shell scripts that begin wherever their task stands."""

import json
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from culture.clients.shared.instructions import instructions
from culture.config import paths
from culture.config.load import load_team
from culture.config.team import TeamConfig
from culture.orchestrator.journal.journal import JournalEntry, Phase
from culture.orchestrator.journal.replay import replay
from culture.orchestrator.journal.state import Act
from culture.orchestrator.members.roster import MemberConfigs
from culture.orchestrator.prompts import HANDOFF, load
from tests.support.model.told import missing

SERVER, SLUG, STANDUP = "spark", "demo", "#standup-demo"
MEMBERS = 10
_IRC = "python3 -P -m culture.clients.shared.skill.irc_client"
_HEAD = """\
id=${{PWD##*agent-task-}}
case ${{id#demo-}} in {waiting}) kind=waiting;; {failed}) kind=failed;; *) kind=done;; esac
say() {{ for try in $(seq 60); do {irc} send "$@" && return; sleep 1; done; }}
written() {{ test -n "$(git log --format=%h main.. -- "$id.txt")"; }}
"""
_MANAGER = """
if test $kind = done && written; then
    flock {folder}/$id.lock sh {folder}/tidy
    say '#standup-demo' "TASK: $id done: it is written"
elif test $kind != done && test -e $id.draft; then
    say '#standup-demo' "TASK: $id $kind: there is but a draft"
else
    for try in $(seq 40); do {irc} spawn implementer "write $id" && break; sleep 2; done
fi
"""
_TIDY = """
rm -f "$(git rev-parse --git-dir)/index.lock"
git add --all && { git diff --cached --quiet || git commit -q -m leftovers; }
"""
_WORKER = """
keep() {{ head -c 300 /dev/urandom | base64 > $1; echo "$id $(git hash-object $1)" >> {folder}/ledger; }}
test $kind = done || keep $id-$$-$(date +%s%N).log
sleep $((15 + $$ % 10))
if test $kind = done; then flock {folder}/$id.lock sh {folder}/write
else test -e $id.draft || keep $id.draft; fi
manager=$({python} {folder}/manager.py $id)
say "#work-$id" "@$manager it is written"
"""
_WRITE = """
written && exit
rm -f "$(git rev-parse --git-dir)/index.lock"
echo "$id by $CULTURE_NICK" > $id.txt
git add $id.txt && git commit -q -m "work on $id" && echo "$id $(git rev-parse HEAD)" >> {folder}/ledger
"""
_WHO = """\
import json, sys
members = json.load(open({state!r}))["members"]
print(*(each["nick"] for each in members if each["role"] == "manager" and each["task_id"] == sys.argv[1]))
"""
"""Every agent looks at how its task stands and goes on from there, whatever it is told, as often as it is told."""


def told_to(role: str, config: TeamConfig) -> str:
    """All that somebody of a role is told at its start, when it works on demo-1, and when it hands over."""
    roster = MemberConfigs(
        config, paths.team_dir(config.slug), "main", f"{SERVER}-team-{config.slug}", f"{SERVER}-Harper"
    )
    task, member = f"{config.slug}-1", {"name": "Kim", "nick": f"{SERVER}-Kim", "role": role}
    entries = (
        (Act.TASK, Phase.DONE, {"id": task, "text": "", "by": ""}),
        (Act.HIRE, Phase.INTEND, {**member, "task": None if role == "em" else task}),
    )
    state = replay(JournalEntry(number, 0.0, *entry) for number, entry in enumerate(entries, 1))
    who = state.members[f"{SERVER}-kim"]
    handoff = load(config.project_dir, HANDOFF, roster.placeholders(who, state))
    return "\n".join([instructions(who.nick), roster.system_prompt(who, state), handoff])


def only_told(role: str, config: TeamConfig, commands: list[str]) -> None:
    """Fails where what a scripted member does takes a command, an option or a form that its role is not told."""
    told = told_to(role, config)
    known: Mapping[str, str] = {"id": f"{config.slug}-1", "kind": "failed"}
    made = [re.sub(r"\$(\w+)|\{(\w+)\}", lambda at: known.get(at[1] or at[2], at[0]), each) for each in commands]
    untold = sorted({use for each in made for use in missing(each, told)})
    assert not untold, f"nobody tells {role} of {untold}, and its playbook uses them"


def furnish(folder: Path, project: Path, port: int, tasks: int) -> None:
    """Write the scripts that members follow, and the team's file."""
    folder.mkdir()
    last = [str(number) for number in (tasks - 1, tasks)]
    failed = [str(number) for number in range(1, tasks - 1) if number % 8 == 3]
    head = _HEAD.format(irc=_IRC, waiting="|".join(last), failed="|".join(failed) or "none")
    known = {"folder": folder, "irc": _IRC, "python": shlex.quote(sys.executable)}
    for name, text in {"manager": _MANAGER, "worker": _WORKER, "write": _WRITE}.items():
        (folder / name).write_text(head + text.format(**known))
    (folder / "tidy").write_text(_TIDY)
    (folder / "manager.py").write_text(_WHO.format(state=str(paths.team_dir(SLUG) / "state.json")))
    (folder / "ledger").touch()
    file = paths.team_dir(SLUG) / "team.yaml"
    file.parent.mkdir(parents=True)
    roles = {"em": "true", "manager": f"sh {folder}/manager", "implementer": f"sh {folder}/worker"}
    said = {
        "slug": SLUG,
        "project_dir": str(project),
        "server": {"name": SERVER, "host": "127.0.0.1", "port": port},
        "supervisor": {"agent": "none"},
        "heartbeat": 3,
        "limits": {"members": MEMBERS, "tasks": MEMBERS},
        "roles": {role: _scripted(folder / f"{role}.playbook", command) for role, command in roles.items()},
    }
    file.write_text(json.dumps(said))
    config = load_team(file).config
    only_told("manager", config, [head, (folder / "manager").read_text()])
    only_told("implementer", config, [head, (folder / "worker").read_text()])


def _scripted(file: Path, command: str) -> dict[str, Any]:
    file.write_text(
        json.dumps({"rules": [], "default": [{"run": {"command": command, "timeout": 250}}, {"say": "ok"}]})
    )
    recovery = {"restart_delay": 0.05, "silence": 300, "interrupt_grace": 5}
    return {"agent": "scripted", "options": {"playbook": str(file), "recovery": recovery, "cool_down": 0}}
