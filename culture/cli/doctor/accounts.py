"""Who may log in: whether the file can be read, whether people have accounts, and whether nicks clash."""

from collections.abc import Iterator
from importlib.util import find_spec

from culture.cli.agents.agent_login import token
from culture.cli.connect_hints import example_nick
from culture.cli.doctor.agent_programs import COMMAND
from culture.cli.doctor.inventory import Inventory, LocalServer, shown
from culture.cli.doctor.runner import Finding, error, hint, warning
from culture.clients.acp.detect import SDK
from culture.clients.shared.programs import Login, installing, located
from culture.config import paths
from culture.config.agents import AgentConfig
from culture.config.listen_policy import is_loopback
from culture.protocol.names import fold
from culture.protocol.vocabulary import UserClass
from culture.server.auth.accounts import Account
from culture.server.auth.password import token_digest
from culture.server.shapes import UnreadableJson


def readable(scene: Inventory) -> Iterator[Finding]:
    """The file of accounts."""
    for server in scene.servers:
        try:
            scene.accounts(server)
        except OSError as wrong:
            yield _unreadable(server, str(wrong.strerror))
        except ValueError:
            yield _unreadable(server, "it is not what was written there")


def _unreadable(server: LocalServer, why: str) -> Finding:
    file = shown(server.config.accounts_file)
    return error(f"{file} cannot be read: {why}", "nobody can log in", f"`culture restore`, or move {file} away")


def people(scene: Inventory) -> Iterator[Finding]:
    """As soon as there are accounts, people should have one, too."""
    for server in scene.servers:
        known = _accounts(scene, server)
        if not known or any(each.kind is UserClass.HUMAN for each in known):
            continue
        is_wide = any(not each.is_loopback for each in server.config.listen)
        say = warning if is_wide else hint
        yield say(
            f"no account of {server.config.name} is a person's",
            "whoever comes in without a login counts as a person, and may answer what agents ask",
            "`culture account add NAME`",
        )


def nicks(scene: Inventory) -> Iterator[Finding]:
    """An agent and a person are never one nick."""
    if scene.settings is None:
        return
    own = scene.server_at(scene.settings.server)
    if own is None:
        return
    prefix = f"{fold(own.config.account_prefix)}-"
    people = {
        fold(nick).removeprefix(prefix): each.name
        for each in _accounts(scene, own)
        if each.kind is UserClass.HUMAN
        for nick in (each.name, *each.nicks)
    }
    yours = fold(example_nick(own.config))
    for agent in scene.agents:
        name = people.get(fold(agent.nick).removeprefix(prefix))
        if name is not None:
            yield error(
                f"{agent.nick} is an agent, and the nick of the person {name}",
                "the agent is not let in under it",
                "give the agent another nick in agents.yaml",
            )
        elif fold(agent.nick) == yours:
            yield warning(
                f"{agent.nick} is an agent, and the nick that `culture say` takes for you",
                "you and the agent would be one and the same",
                "give the agent another nick in agents.yaml",
            )


def _accounts(scene: Inventory, server: LocalServer) -> list[Account]:
    try:
        return [each for each in scene.accounts(server).accounts.values() if each.is_active]
    except (ValueError, OSError):
        return []


"""An agent that names its program itself needs no other."""


_OWN_PROVIDER = "provider"


def backends(scene: Inventory) -> Iterator[Finding]:
    """The logins of the programs; of a key or a token nothing is looked at beyond its being there."""
    own_provider = {agent.nick for agent in scene.agents if _OWN_PROVIDER in agent.backend_options}
    for need in scene.needed:
        there = [each for each in need.programs if each.version is not None]
        who = [nick for nick in need.users if nick not in own_provider]
        if there and who and all(each.login is Login.MISSING for each in there):
            yield error(
                f"nobody has logged in to {there[0].program}", f"{', '.join(who)} cannot start", there[0].remedy
            )


def commands(scene: Inventory) -> Iterator[Finding]:
    """The programs that agents.yaml names itself, and what speaks to them."""
    named = [agent for agent in scene.agents if COMMAND in agent.backend_options]
    if named and find_spec(SDK) is None:
        who = ", ".join(agent.nick for agent in named)
        yield error("what speaks to agents by ACP is not installed", f"{who} cannot start", installing(named[0].agent))
    for agent in named:
        command = agent.backend_options.get(COMMAND)
        program = command[0] if isinstance(command, tuple | list) and command else command
        if isinstance(program, str) and program.split() and located(program.split()[0]) is None:
            yield error(
                f"{agent.nick}: there is no program {program.split()[0]}",
                f"{COMMAND} names it, and it is not on PATH",
                f"install it, or correct {COMMAND} in {shown(paths.agents_file())}",
            )


def accounts(scene: Inventory) -> Iterator[Finding]:
    """The accounts of the agents, and the tokens in their secret files."""
    if scene.settings is None:
        return
    address = scene.settings.server
    own = scene.server_at(address)
    for agent in scene.agents:
        if own is not None:
            yield from _at_home(scene, own, agent)
        elif not is_loopback(address.host) and not paths.secret_file(agent.nick).exists():
            yield warning(
                f"{agent.nick} has no token for {address.host}",
                "it comes in by its nick alone, if that server allows it",
                f"there: `culture account add {agent.nick} --class agent --no-password` and `culture account token "
                f"{agent.nick}`; the token belongs into {shown(paths.secret_file(agent.nick))} (chmod 600)",
            )


def _at_home(scene: Inventory, server: LocalServer, agent: AgentConfig) -> Iterator[Finding]:
    account = _account(scene, server, agent.nick)
    if account is None:
        return  # `culture start` makes it
    if not account.is_active:
        yield error(
            f"the account of {agent.nick} is revoked", "it cannot log in", f"`culture account passwd {agent.nick}`"
        )
        return
    known = token(agent.nick)
    if agent.nick in scene.daemons and (known is None or not _fits(known, account)):
        yield warning(
            f"{agent.nick} runs, and the token in {shown(paths.secret_file(agent.nick))} is none of its account",
            "it is on as long as its connection lasts, and cannot log in again",
            f"`culture restart {agent.nick}` makes another",
        )
    elif known is not None and not _fits(known, account):
        yield hint(
            f"the token in {shown(paths.secret_file(agent.nick))} is none of the account of {agent.nick}",
            "the next start makes another",
            f"`culture start {agent.nick}`",
        )


def _account(scene: Inventory, server: LocalServer, nick: str) -> Account | None:
    prefix = f"{fold(server.config.account_prefix)}-"
    try:
        found = scene.accounts(server).accounts.values()
    except (UnreadableJson, ValueError, OSError):
        return None  # told by the check of accounts
    return next(
        (each for each in found if fold(each.name).removeprefix(prefix) == fold(nick).removeprefix(prefix)), None
    )


def _fits(known: str, account: Account) -> bool:
    return token_digest(known) in {each.digest for each in account.tokens}
