"""``culture backup`` and ``culture restore``: a server's data in one file, and back."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from culture import __version__
from culture.cli.amounts import shown_size
from culture.cli.choices import Choices, ConfigFile, DataDir, Name
from culture.cli.failing import fail
from culture.cli.living import as_running, certainly
from culture.cli.progress import Progress
from culture.config import paths
from culture.config.model import ServerConfig
from culture.server.backup import collect
from culture.server.backup.collect import Source
from culture.server.backup.create import Label, NoRoom, create
from culture.server.backup.manifest import ACCOUNTS, CONFIG, TLS

NOT_INCLUDED = "The history is in PostgreSQL and not in this file"


def backup(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", show_default=False, help="Where to; culture-<name>-<time>.tar.gz if not said."),
    ] = None,
    with_tls: Annotated[
        bool, typer.Option("--with-tls", help="With the certificates and keys in ~/.culture/tls.")
    ] = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Write a server's data to one file; the server may be running.

    The file has everything in it, secrets too: keep it as you keep those.
    """
    choices = as_running(Choices(config, name, None, None, data_dir))
    settings = choices.load().config
    folder = settings.data_dir.resolve()
    if not folder.is_dir():
        certainly(Choices(config, name, None, None, data_dir))
        fail(f"{settings.name} has no data in {folder}")
    now = time.time()
    target = (file or Path(f"culture-{settings.name}-{stamp(now)}.tar.gz")).absolute()
    sources = list(_sources(settings, folder, choices.config or paths.server_file(), with_tls))
    label = Label(settings.name, __version__, _kind(settings))
    total = sum(source.path.stat().st_size for source in sources if source.path.exists())
    try:
        with Progress("Copying", total) as copied, Progress("Packing", total) as packed:
            made = create(target, label, sources, now, copied.step, packed.step)
    except FileExistsError:
        fail(f"{target} is there already, and stays as it is")
    except NoRoom as error:
        fail(str(error))
    except OSError as error:
        fail(f"cannot write {target}: {error.strerror}")
    packed_size = shown_size(target.stat().st_size)
    typer.echo(
        f"{target}: {settings.name} as it is, {len(made.files)} files, {shown_size(made.size)} in {packed_size}."
    )
    if label.history != "sqlite":
        typer.echo(f"{NOT_INCLUDED}: back it up with pg_dump.", err=True)


def stamp(at: float) -> str:
    """A time as it is part of a file's name."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at))


def _kind(settings: ServerConfig) -> str:
    return "sqlite" if settings.history.store == "sqlite" else "postgresql"


def _sources(settings: ServerConfig, folder: Path, config: Path, with_tls: bool) -> Iterator[Source]:
    """The configuration comes first: a restore wants to know it before all else."""
    if config.is_file():
        yield Source(config, CONFIG)
    if settings.accounts_file.is_file():
        yield Source(settings.accounts_file, ACCOUNTS)
    if with_tls:
        keys = paths.home() / TLS
        yield from (Source(path, f"{TLS}/{path.name}") for path in sorted(keys.glob("*")) if path.is_file())
    yield from collect.in_data(folder, _left_out)


def _left_out(path: Path) -> None:
    typer.echo(f"{path} is left out: it is not a plain file", err=True)
