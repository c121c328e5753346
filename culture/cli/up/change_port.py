"""A port that was chosen for a server which has one already: written down wherever the old one is."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from culture.cli import yaml_edit
from culture.cli.agents.select_agents import load as load_agents
from culture.cli.options import Choices
from culture.config import paths
from culture.config.listen_policy import is_loopback
from culture.config.load import load_server
from culture.config.model import ServerConfig
from culture.protocol.names import fold, short_name


def is_settled(choices: Choices) -> bool:
    """Whether the server that is meant is that of culture.yaml, which is ours to write in."""
    written = load_server().config if choices.config is None and paths.server_file().exists() else None
    return written is not None and (choices.name is None or fold(choices.name) == fold(written.name))


def has_one_place(choices: Choices) -> bool:
    """Whether a port can be written down for it without a question: it listens at one address."""
    return is_settled(choices) and len(load_server().config.listen) == 1


def take_over(port: int) -> Iterator[Path]:
    """Write the port into culture.yaml, and into agents.yaml where that names this server; the files that changed."""
    old = load_server().config
    if old.listen[0].port != port:
        yield _rewritten(paths.server_file(), lambda document: _listen(document, port), load_server)
    if paths.agents_file().exists() and _is_elsewhere(old, port):
        yield _rewritten(paths.agents_file(), lambda document: _connect(document, port), load_agents)


def _is_elsewhere(old: ServerConfig, port: int) -> bool:
    """Whether the agents look for this very server at another port: by its name, else by its old port."""
    at, listener = load_agents().server, old.listen[0]
    if at.tls != (listener.tls is not None) or not is_loopback(at.host) or at.port == port:
        return False
    return at.port == listener.port if at.name is None else short_name(fold(at.name)) == old.short_name


def _listen(document: Any, port: int) -> None:
    if document.get("listen"):
        document["listen"][0]["port"] = port
    else:
        document["listen"] = [{"host": "127.0.0.1", "port": port}]


def _connect(document: Any, port: int) -> None:
    if document.get("server"):
        document["server"]["port"] = port
    else:
        document["server"] = {"host": "127.0.0.1", "port": port}


def _rewritten(file: Path, change: Callable[[Any], None], load: Callable[[Path], object]) -> Path:
    yaml = yaml_edit.round_trip()
    document = yaml.load(file.read_text(encoding="utf-8"))
    document = {} if document is None else document
    change(document)
    yaml_edit.replace(file, yaml_edit.dumped(yaml, document), load)
    return file
