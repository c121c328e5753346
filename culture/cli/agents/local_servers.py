"""Where the servers of this machine are."""

from culture.cli.agents.select_agents import load
from culture.cli.connect_hints import reached_by
from culture.cli.options import Choices
from culture.cli.server import pid_file
from culture.cli.server.background import accepts
from culture.config import paths
from culture.config.agents import ServerAddress
from culture.config.errors import ConfigError
from culture.config.listen_policy import is_loopback
from culture.config.model import ServerConfig


def own_address() -> ServerAddress:
    """Where the server of this home folder runs, else where it would."""
    settled = Choices().load().config
    for name in sorted(pid_file.all_running(), key=lambda each: each != settled.name):
        note = pid_file.running(name)
        found = plain_listener(Choices.parse(note.options).load().config, note.addresses) if note else None
        if found is not None:
            return found
    planned = [(each.host, each.port) for each in settled.listen]
    return plain_listener(settled, planned) or ServerAddress(name=settled.name)


def own_server(address: ServerAddress) -> ServerConfig | None:
    """The server of this home folder that listens at the address, as it runs or would run."""
    if not is_loopback(address.host):
        return None
    for name in pid_file.all_running():
        note = pid_file.running(name)
        if note is not None and any(port == address.port for _, port in note.addresses):
            return Choices.parse(note.options).load().config
    try:
        settled = Choices().load().config
    except ConfigError:
        return None
    is_ours = paths.server_file().exists() and any(each.port == address.port for each in settled.listen)
    # Whoever answers there while ours does not run is somebody else.
    return settled if is_ours and not accepts((address.host, address.port)) else None


def server_user() -> str | None:
    """User of the server as agents.yaml names it; None where it names none or cannot be read."""
    try:
        return load().server.user
    except ConfigError:
        return None


def plain_listener(
    server: ServerConfig, addresses: list[tuple[str, int]] | tuple[tuple[str, int], ...]
) -> ServerAddress | None:
    """The first address at which a program on this machine gets in without TLS."""
    for listener, (host, port) in zip(server.listen, addresses, strict=False):
        if listener.tls is None and listener.websocket is None:
            return ServerAddress(name=server.name, host=reached_by(host), port=port)
    return None
