"""The options that say which server is meant and where it runs."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer

from culture.config.load import Loaded, ServerOptions, load_server

if TYPE_CHECKING:
    from culture.config.model import ServerConfig

ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Read this file, not ~/.culture/culture.yaml.")
]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="The server's name; every nick begins with its first label."),
]
Host = Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="Listen on this address alone.")]
Port = Annotated[
    int | None,
    typer.Option("--port", min=0, max=65535, metavar="PORT", help="Listen on this port; 0 takes a free one."),
]
AsJson = Annotated[bool, typer.Option("--json", help="The same for programs.")]
DataDir = Annotated[Path | None, typer.Option("--data-dir", metavar="FOLDER", help="Keep the server's data here.")]


@dataclass(frozen=True)
class Choices:
    """What the command line says; None leaves it to the file, and where that is silent to the defaults."""

    config: Path | None = None
    name: str | None = None
    host: str | None = None
    port: int | None = None
    data_dir: Path | None = None

    @classmethod
    def parse(cls, arguments: tuple[str, ...]) -> Self:
        """What ``arguments`` wrote."""
        said = dict(zip(arguments[::2], arguments[1::2], strict=True))
        return cls(
            config=Path(said["--config"]) if "--config" in said else None,
            name=said.get("--name"),
            host=said.get("--host"),
            port=int(said["--port"]) if "--port" in said else None,
            data_dir=Path(said["--data-dir"]) if "--data-dir" in said else None,
        )

    @property
    def arguments(self) -> tuple[str, ...]:
        """The same choices for another process, whatever its working directory."""
        pairs = {
            "--config": self.config and self.config.absolute(),
            "--name": self.name,
            "--host": self.host,
            "--port": self.port,
            "--data-dir": self.data_dir and self.data_dir.absolute(),
        }
        return tuple(word for option, value in pairs.items() if value is not None for word in (option, str(value)))

    def over(self, others: Self) -> Self:
        """These choices, and those of ``others`` where these are silent."""
        return replace(others, **{key: value for key, value in vars(self).items() if value is not None})

    def load(self) -> "Loaded[ServerConfig]":
        """The configuration with these choices in it."""
        data_dir = self.data_dir.absolute() if self.data_dir else None
        return load_server(self.config, ServerOptions(self.name, self.host, self.port, data_dir))

    def server_name(self) -> str:
        """Which server is meant, also where the file is broken but the name was given."""
        return self.name or self.load().config.name
