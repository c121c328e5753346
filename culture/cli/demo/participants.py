"""The cast of the demo: two servers, two people, four scripted agents; writes their files."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from culture.cli.agents import agent_login
from culture.config.agents import ALERT_EVENTS
from culture.lib.files import PRIVATE_FILE, private_directory
from culture.protocol.vocabulary import UserClass, WellKnownChannel
from culture.server.auth.account_store import AccountStore
from culture.server.auth.accounts import new_account

HERE, THERE = "spark", "thor"
YOU, EVE = f"{HERE}-you", f"{THERE}-eve"
BUILDER, DIGGER, ECHO, SCOUT = f"{HERE}-builder", f"{HERE}-digger", f"{HERE}-echo", f"{THERE}-scout"
AGENTS = {BUILDER: HERE, DIGGER: HERE, ECHO: HERE, SCOUT: THERE}
"""Agent → server."""
WORKSHOP = "#workshop"
WHERE_AGENTS_ARE = (WellKnownChannel.GENERAL.value, WORKSHOP)
CHANNELS = (*WHERE_AGENTS_ARE, WellKnownChannel.ALERTS.value)
MOST_HOPS = 6

Playbook = Mapping[str, Any]


def _costing(tokens: int, cost: float, *steps: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"usage": {"tokens": tokens, "cost_usd": cost}}, *steps]


_ASKING = {
    "to": WellKnownChannel.GENERAL.value,
    "question": "The tests are green. Shall I deploy the site?",
    "timeout": "1m",
    "options": "yes/no",
}
_TRYING = [
    {"run": "echo 'test_login: FAILED, 5 s without an answer'; exit 1"},
    {"wait": "250ms"},
]
PLAYBOOKS: Mapping[str, Playbook] = {
    BUILDER: {
        "rules": [
            {
                "when": "> .*deploy",
                "steps": _costing(2100, 0.03, {"ask": _ASKING}, {"say": "The answer was “{output}”: the site is out."}),
            }
        ]
    },
    DIGGER: {
        "rules": [
            {
                "when": "> .*test_login",
                "steps": _costing(
                    9400, 0.14, {"loop": {"times": 8, "steps": _TRYING}}, {"say": "I ran it again and again."}
                ),
            }
        ],
        "judge": [
            {
                "when": r"(?:called run [\s\S]*){3}",
                "verdict": "CORRECTION You run the same test again and nothing else. Read its log first.",
            }
        ],
    },
    ECHO: {
        "rules": [{"when": "> .*the others", "steps": _costing(300, 0.004, {"say": f"Thank you, @{SCOUT}!"})}],
        "default": _costing(300, 0.004, {"say": f"No, I thank you, @{SCOUT}!"}),
    },
    SCOUT: {
        "rules": [
            {
                "when": "> .*broke",
                "steps": _costing(1200, 0.02, {"say": "{sender}: the last change to login.py did, 20 minutes ago."}),
            },
            {
                "when": "> .*still there",
                "steps": _costing(
                    700, 0.01, {"say": "{sender}: I am. The link was down, and now I have your message."}
                ),
            },
        ],
        "default": _costing(300, 0.004, {"say": f"No, I thank you, @{ECHO}!"}),
    },
}
"""Agent → playbook: its replies and their pretended cost. No model is used."""


@dataclass(frozen=True, slots=True)
class DemoPerson:
    """Nick and token of a person who takes part in the demo."""

    nick: str
    token: str


def server_file(folder: Path, name: str) -> Path:
    """Return the path of the configuration file of a demo server; the first has culture.yaml."""
    return folder / ("culture.yaml" if name == HERE else f"{name}.yaml")


def agents_file(folder: Path, server: str) -> Path:
    """Return the path of the file with the agents of a demo server."""
    return folder / ("agents.yaml" if server == HERE else f"{server}-agents.yaml")


def accounts_file(folder: Path, server: str) -> Path:
    """Return the path of the accounts file of a demo server."""
    return folder / ("accounts.json" if server == HERE else f"{server}-accounts.json")


def write_server(folder: Path, name: str, port: int, link: Mapping[str, str]) -> Path:
    """Write the configuration of a demo server and return the file's path.

    ``folder``: the demo's home folder. ``link``: the settings of the link to the other server.
    """
    settings = {
        "name": name,
        "listen": [{"port": port}],
        "accounts_file": str(accounts_file(folder, name)),
        "channels": list(CHANNELS),
        "links": [dict(link)],
        "history": {"semantic": {"enabled": False}},
    }
    return _write(server_file(folder, name), settings)


def new_secret() -> str:
    """Return a new random secret for the link between the demo's two servers."""
    return secrets.token_hex(16)


def write_agents(folder: Path, server: str, port: int) -> list[str]:
    """Write agents.yaml, playbooks and accounts for a demo server's agents; return their nicks.

    ``port``: that of the server.
    """
    nicks = [nick for nick, home in AGENTS.items() if home == server]
    settings = {
        "server": {"name": server, "host": "127.0.0.1", "port": port},
        "max_hops": MOST_HOPS,
        "cool_down": "200ms",
        "trust": {"humans": "always", "agents": "never", "timeout": "1m"},
        "budget": {"usd_per_day": 1.0},
        "webhooks": {"events": [event for event in ALERT_EVENTS if event != "agent_complete"]},
        "agents": [_agent(folder, nick) for nick in nicks],
    }
    _write(agents_file(folder, server), settings)
    store = AccountStore(accounts_file(folder, server), server)
    for nick in nicks:
        agent_login.ensure_account(nick, store)
    return nicks


def _agent(folder: Path, nick: str) -> dict[str, Any]:
    work = private_directory(folder / "work" / nick)
    _write(work / "playbook.yaml", PLAYBOOKS[nick])
    watched = {"supervisor": {"agent": "scripted", "eval_interval": 1}} if "judge" in PLAYBOOKS[nick] else {}
    entry = {"nick": nick, "agent": "scripted", "directory": str(work), "playbook": "playbook.yaml"}
    return {**entry, "channels": list(WHERE_AGENTS_ARE), "post_output": "always", **watched}


def admit(folder: Path, nick: str) -> DemoPerson:
    """Add an account for a demo person and store its token; return nick and token.

    The token is stored where the command line looks for it.
    """
    server = nick.partition("-")[0]
    store = AccountStore(accounts_file(folder, server), server)
    store.add(new_account(nick, UserClass.HUMAN, always_on=False))
    token = store.add_token(nick, "demo")
    agent_login.store_token(nick, token)
    return DemoPerson(nick, token)


def _write(file: Path, data: Mapping[str, Any]) -> Path:
    file.write_text(json.dumps(data, indent=2), encoding="utf-8")
    file.chmod(PRIVATE_FILE)
    return file
