"""Who may log in: whether the file can be read, whether people have accounts, and whether nicks clash."""

from collections.abc import Iterator

from culture.cli.connect import example_nick
from culture.cli.doctor.finding import Finding, error, hint, warning
from culture.cli.doctor.scene import Scene, Server, shown
from culture.protocol.names import fold
from culture.protocol.vocabulary import UserClass
from culture.server.accounts.model import Account


def readable(scene: Scene) -> Iterator[Finding]:
    """The file of accounts."""
    for server in scene.servers:
        try:
            scene.accounts(server)
        except OSError as wrong:
            yield _unreadable(server, str(wrong.strerror))
        except ValueError:
            yield _unreadable(server, "it is not what was written there")


def _unreadable(server: Server, why: str) -> Finding:
    file = shown(server.config.accounts_file)
    return error(f"{file} cannot be read: {why}", "nobody can log in", f"`culture restore`, or move {file} away")


def people(scene: Scene) -> Iterator[Finding]:
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


def nicks(scene: Scene) -> Iterator[Finding]:
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


def _accounts(scene: Scene, server: Server) -> list[Account]:
    try:
        return [each for each in scene.accounts(server).accounts.values() if each.is_active]
    except (ValueError, OSError):
        return []
