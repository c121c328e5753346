"""Options that select a server: configuration file, name, address and data folder."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer

from culture.config.load import Loaded, ServerOptions, load_server

if TYPE_CHECKING:
    from culture.config.model import ServerConfig

ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Read this file instead of ~/.culture/culture.yaml.")
]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="The server's name; every nick begins with its first label."),
]
Host = Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="Listen on this address only.")]
Port = Annotated[
    int | None,
    typer.Option("--port", min=0, max=65535, metavar="PORT", help="Listen on this port; 0 picks a free one."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DataDir = Annotated[Path | None, typer.Option("--data-dir", metavar="FOLDER", help="Folder for the server's data.")]


@dataclass(frozen=True)
class Choices:
    """The options of a command that select a server, with their values.

    None means: as in the configuration file, or the default.
    """

    config: Path | None = None
    name: str | None = None
    host: str | None = None
    port: int | None = None
    data_dir: Path | None = None

    @classmethod
    def parse(cls, arguments: tuple[str, ...]) -> Self:
        """Return the options that the property ``arguments`` has turned into command line arguments."""
        values = dict(zip(arguments[::2], arguments[1::2], strict=True))
        return cls(
            config=Path(values["--config"]) if "--config" in values else None,
            name=values.get("--name"),
            host=values.get("--host"),
            port=int(values["--port"]) if "--port" in values else None,
            data_dir=Path(values["--data-dir"]) if "--data-dir" in values else None,
        )

    @property
    def arguments(self) -> tuple[str, ...]:
        """These options as command line arguments for another process, with absolute paths."""
        pairs = {
            "--config": self.config and self.config.absolute(),
            "--name": self.name,
            "--host": self.host,
            "--port": self.port,
            "--data-dir": self.data_dir and self.data_dir.absolute(),
        }
        return tuple(word for option, value in pairs.items() if value is not None for word in (option, str(value)))

    def over(self, others: Self) -> Self:
        """Return these options; those that are None are taken from ``others``."""
        return replace(others, **{key: value for key, value in vars(self).items() if value is not None})

    def load(self) -> "Loaded[ServerConfig]":
        """Return the server's configuration with these options applied; ConfigError if invalid."""
        data_dir = self.data_dir.absolute() if self.data_dir else None
        return load_server(self.config, ServerOptions(self.name, self.host, self.port, data_dir))

    def server_name(self) -> str:
        """Return the name of the selected server.

        If the options have the name, the configuration is not read, and so may be invalid.
        """
        return self.name or self.load().config.name
