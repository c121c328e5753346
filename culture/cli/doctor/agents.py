"""Checks of agents: folders, state, orphans, logins, accounts; and of teams and wikis."""

import os
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from culture.cli.agents.agent_login import read_token
from culture.cli.agents.agent_report import SILENT, STARTING, STOPPED, report
from culture.cli.doctor.inventory import COMMAND, Inventory, LocalServer, display_path
from culture.cli.doctor.runner import Finding, error, hint, warning
from culture.cli.humanize import counted
from culture.cli.local_servers import example_nick
from culture.cli.team.select_team import TEAM, orchestrator_pid
from culture.clients.acp.detect import SDK
from culture.clients.shared import ending
from culture.clients.shared.programs import Login, installing, located
from culture.config import paths
from culture.config.agents import AgentConfig
from culture.config.listen_policy import is_loopback
from culture.config.team import TeamConfig
from culture.lib.process.orphans import carrying
from culture.orchestrator.journal.store import read_state
from culture.protocol.names import fold
from culture.protocol.vocabulary import AgentState, UserClass
from culture.server.auth.accounts import Account
from culture.server.auth.password import token_digest
from culture.server.shapes import UnreadableJson

_AT_ONCE = 16


def check_folders(inventory: Inventory) -> Iterator[Finding]:
    """Report agents whose working folder is missing or read-only."""
    for agent in inventory.agents:
        place = agent.directory
        if not place.is_dir():
            yield error(
                f"the folder of {agent.nick} is not there: {display_path(place)}",
                "it cannot start",
                f"mkdir -p {display_path(place)}, or correct `directory:` in {display_path(paths.agents_file())}",
            )
        elif not os.access(place, os.W_OK | os.X_OK, effective_ids=True):
            yield warning(
                f"{agent.nick} may not write to its folder {display_path(place)}",
                "it can read files there, but not change them",
                f"chmod u+rwx {display_path(place)}",
            )


def check_states(inventory: Inventory) -> Iterator[Finding]:
    """Report agents that crashed, hang, are offline, or have unread messages but do not run."""
    backends = {agent.nick: agent.agent for agent in inventory.agents}
    names = list(dict.fromkeys([*backends, *inventory.daemons]))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for result in pool.map(lambda nick: _report(nick, backends.get(nick, "?")), names):
            yield from result if isinstance(result, list) else _check_state(result)
    for nick in sorted(inventory.daemons.keys() - backends.keys()) if inventory.settings is not None else ():
        yield hint(
            f"{nick} runs, and agents.yaml does not name it",
            "it was taken out of the file, or belongs to a team",
            f"`culture stop {nick}` if nobody needs it",
        )


def _report(nick: str, backend: str) -> dict[str, Any] | list[Finding]:
    try:
        return report(nick, backend)
    except sqlite3.Error:
        return []  # reported by the check of the databases


def _check_state(facts: dict[str, Any]) -> Iterator[Finding]:
    nick, state, why = facts["nick"], facts["state"], facts.get("why") or ""
    if state in (AgentState.PARKED, AgentState.CRASHED) or (
        state == STOPPED and facts.get("why") not in (None, "paused")
    ):
        yield warning(
            f"{nick} is {state if state != STOPPED else 'parked'}{f': {why}' if why else ''}",
            "it crashed too often, or has spent what it may",
            f"`culture logs {nick}`, then `culture resume {nick}`" if state != STOPPED else f"`culture logs {nick}`",
        )
    elif state == SILENT:
        yield error(f"the daemon of {nick} does not answer", why, f"`culture restart {nick}`")
    elif state == STARTING:
        yield warning(f"{nick} is not ready yet", "it waits for its server or its program", f"`culture logs {nick}`")
    elif state != STOPPED and not facts["connected"]:
        yield warning(
            f"{nick} is not on its server",
            "messages to it are kept there, and delivered later",
            f"`culture logs {nick}`",
        )
    elif state == STOPPED and facts["unread"]:
        waiting = counted(facts["unread"], "message waits", "messages wait")
        yield hint(f"{nick} does not run, and {waiting} for it", "nobody answers", f"`culture start {nick}`")


def check_orphans(inventory: Inventory) -> Iterator[Finding]:
    """Report processes of agents whose daemon is gone."""
    for file in sorted((inventory.home / "inbox").glob("*.db")):
        nick = file.stem
        if nick in inventory.daemons:
            continue
        try:
            marks = ending.tokens(nick)
        except sqlite3.Error:
            continue
        left = [pid for mark in marks for pid in carrying(mark)]
        if left:
            yield warning(
                f"{counted(len(left), 'process', 'processes')} of {nick} outlived its daemon: "
                f"{', '.join(map(str, left[:10]))}",
                "the daemon was killed; they go on working and spending money, and nobody sees it",
                f"`culture stop {nick}` ends them",
            )


_OLD = 600.0
_LOCKS = ("HEAD.lock", "refs/heads/main.lock", "packed-refs.lock")
_PREFIX, _KEPT = "agent-task-", ".kept-"


def check_projects(inventory: Inventory) -> Iterator[Finding]:
    """Report teams whose project is not a git repository, or has an old lock file of git."""
    for team in inventory.teams:
        place = team.project_dir
        if not (place / ".git").exists():
            what = "is not there" if not place.is_dir() else "is not a git repository"
            yield error(
                f"the project of the team {team.slug} {what}: {display_path(place)}",
                "the team cannot begin a task",
                f"correct `project_dir:` in {display_path(paths.team_dir(team.slug) / TEAM)}",
            )
            continue
        lock = place / ".git" / "index.lock"
        if _is_old(lock):
            yield warning(
                f"{display_path(lock)} is {int(time.time() - lock.stat().st_mtime)} s old",
                "a killed git left it behind; until it is removed nobody can commit there",
                f"rm {display_path(lock)}, once no git runs there",
            )


def check_worktrees(inventory: Inventory) -> Iterator[Finding]:
    """Report worktrees of tasks that have ended."""
    for team in inventory.teams:
        left = [path for path in _worktrees(team) if orchestrator_pid(team.slug) is None and not _is_needed(team, path)]
        for path in left:
            remove = f"git -C {display_path(team.project_dir)} worktree remove {display_path(path)}"
            yield hint(
                f"{display_path(path)} belongs to no task of the team {team.slug} any more",
                "it was kept because something in it would be lost, or its orchestrator was killed",
                f"look at it, then {remove if (path / '.git').exists() else f'rm -r {display_path(path)}'}",
            )


def _worktrees(team: TeamConfig) -> list[Path]:
    return sorted((team.project_dir / team.worktrees).glob(f"{_PREFIX}*"))


def _is_needed(team: TeamConfig, path: Path) -> bool:
    live = {task.id for task in read_state(paths.team_dir(team.slug)).live_tasks()}
    return _KEPT not in path.name and path.name.removeprefix(_PREFIX) in live


def check_wikis(inventory: Inventory) -> Iterator[Finding]:
    """Report wikis that are damaged, or have lock files that a killed git left behind."""
    for folder in sorted(each for each in (inventory.home / "wiki").glob("*") if each.is_dir()):
        if not (folder / "objects").is_dir() or not (folder / "HEAD").is_file():
            yield error(
                f"{display_path(folder)} is not a valid wiki",
                "its repository is damaged",
                f"put a clone in its place (`git clone --bare`), or "
                f"mv {display_path(folder)} {display_path(folder)}.old",
            )
        for lock in (folder / name for name in _LOCKS):
            if _is_old(lock):
                yield hint(
                    f"{display_path(lock)} was left behind by a killed git",
                    "the next write removes it",
                    f"rm {display_path(lock)}",
                )


def check_wiki_queues(inventory: Inventory) -> Iterator[Finding]:
    """Report pages that wait to be written to a wiki."""
    for team in inventory.teams:
        pages = list((paths.team_dir(team.slug) / "wiki-queue").glob("[0-9]*.json"))
        if pages:
            yield hint(
                f"{counted(len(pages), 'page waits', 'pages wait')} to be written to the wiki of {team.slug}",
                "the wiki could not be reached or written; nothing is lost",
                "`culture team up` writes them as soon as the wiki can be written",
            )


def _is_old(file: Path) -> bool:
    try:
        return file.stat().st_mtime < time.time() - _OLD
    except OSError:
        return False


def check_accounts_file(inventory: Inventory) -> Iterator[Finding]:
    """Report account files that cannot be read."""
    for server in inventory.servers:
        try:
            inventory.accounts(server)
        except OSError as wrong:
            yield _unreadable(server, str(wrong.strerror))
        except ValueError:
            yield _unreadable(server, "its content is invalid")


def _unreadable(server: LocalServer, why: str) -> Finding:
    file = display_path(server.config.accounts_file)
    return error(f"{file} cannot be read: {why}", "nobody can log in", f"`culture restore`, or move {file} away")


def check_people(inventory: Inventory) -> Iterator[Finding]:
    """Report servers that have accounts, but none that belongs to a person."""
    for server in inventory.servers:
        accounts = _accounts(inventory, server)
        if not accounts or any(each.kind is UserClass.HUMAN for each in accounts):
            continue
        is_wide = any(not each.is_loopback for each in server.config.listen)
        say = warning if is_wide else hint
        yield say(
            f"no account of {server.config.name} is a person's",
            "anybody without a login counts as a person, and may answer agents' questions",
            "`culture account add NAME`",
        )


def check_nicks(inventory: Inventory) -> Iterator[Finding]:
    """Report agents whose nick belongs to a person's account."""
    if inventory.settings is None:
        return
    own = inventory.server_at(inventory.settings.server)
    if own is None:
        return
    prefix = f"{fold(own.config.account_prefix)}-"
    people = {
        fold(nick).removeprefix(prefix): each.name
        for each in _accounts(inventory, own)
        if each.kind is UserClass.HUMAN
        for nick in (each.name, *each.nicks)
    }
    yours = fold(example_nick(own.config))
    for agent in inventory.agents:
        name = people.get(fold(agent.nick).removeprefix(prefix))
        if name is not None:
            yield error(
                f"{agent.nick} is an agent, but its nick belongs to the person {name}",
                "the agent cannot connect with that nick",
                "give the agent another nick in agents.yaml",
            )
        elif fold(agent.nick) == yours:
            yield warning(
                f"{agent.nick} is an agent, but also the nick that `culture say` uses for you",
                "you and the agent would share one nick",
                "give the agent another nick in agents.yaml",
            )


def _accounts(inventory: Inventory, server: LocalServer) -> list[Account]:
    try:
        return [each for each in inventory.accounts(server).accounts.values() if each.is_active]
    except (ValueError, OSError):
        return []


_OWN_PROVIDER = "provider"


def check_program_logins(inventory: Inventory) -> Iterator[Finding]:
    """Report programs of agents that are not logged in to their provider."""
    own_provider = {agent.nick for agent in inventory.agents if _OWN_PROVIDER in agent.backend_options}
    for need in inventory.needed:
        there = [each for each in need.programs if each.version is not None]
        who = [nick for nick in need.users if nick not in own_provider]
        if there and who and all(each.login is Login.MISSING for each in there):
            yield error(
                f"nobody has logged in to {there[0].program}", f"{', '.join(who)} cannot start", there[0].remedy
            )


def check_agent_commands(inventory: Inventory) -> Iterator[Finding]:
    """Report programs that are named in agents.yaml but not installed."""
    named = [agent for agent in inventory.agents if COMMAND in agent.backend_options]
    if named and find_spec(SDK) is None:
        who = ", ".join(agent.nick for agent in named)
        yield error("the package for ACP agents is not installed", f"{who} cannot start", installing(named[0].agent))
    for agent in named:
        command = agent.backend_options.get(COMMAND)
        program = command[0] if isinstance(command, tuple | list) and command else command
        if isinstance(program, str) and program.split() and located(program.split()[0]) is None:
            yield error(
                f"{agent.nick}: there is no program {program.split()[0]}",
                f"{COMMAND} names it, and it is not on PATH",
                f"install it, or correct {COMMAND} in {display_path(paths.agents_file())}",
            )


def check_agent_accounts(inventory: Inventory) -> Iterator[Finding]:
    """Report agents that cannot log in to the server: revoked account, missing or wrong token."""
    if inventory.settings is None:
        return
    address = inventory.settings.server
    own = inventory.server_at(address)
    for agent in inventory.agents:
        if own is not None:
            yield from _check_local_account(inventory, own, agent)
        elif not is_loopback(address.host) and not paths.secret_file(agent.nick).exists():
            yield warning(
                f"{agent.nick} has no token for {address.host}",
                "it connects without a login, if that server allows it",
                f"there: `culture account add {agent.nick} --class agent --no-password` and `culture account token "
                f"{agent.nick}`; the token belongs in {display_path(paths.secret_file(agent.nick))} (chmod 600)",
            )


def _check_local_account(inventory: Inventory, server: LocalServer, agent: AgentConfig) -> Iterator[Finding]:
    account = _account(inventory, server, agent.nick)
    if account is None:
        return  # `culture start` makes it
    if not account.is_active:
        yield error(
            f"the account of {agent.nick} is revoked", "it cannot log in", f"`culture account passwd {agent.nick}`"
        )
        return
    secret = read_token(agent.nick)
    if agent.nick in inventory.daemons and (secret is None or not _fits(secret, account)):
        yield warning(
            f"{agent.nick} runs, and the token in {display_path(paths.secret_file(agent.nick))} "
            "is not valid for its account",
            "it stays connected for now, but cannot log in again",
            f"`culture restart {agent.nick}` makes a new one",
        )
    elif secret is not None and not _fits(secret, account):
        yield hint(
            f"the token in {display_path(paths.secret_file(agent.nick))} is not valid for the account of {agent.nick}",
            "the next start makes a new one",
            f"`culture start {agent.nick}`",
        )


def _account(inventory: Inventory, server: LocalServer, nick: str) -> Account | None:
    prefix = f"{fold(server.config.account_prefix)}-"
    try:
        accounts = inventory.accounts(server).accounts.values()
    except (UnreadableJson, ValueError, OSError):
        return None  # reported by the check of accounts
    return next(
        (each for each in accounts if fold(each.name).removeprefix(prefix) == fold(nick).removeprefix(prefix)), None
    )


def _fits(secret: str, account: Account) -> bool:
    return token_digest(secret) in {each.digest for each in account.tokens}
