"""``culture backup`` and ``culture restore``: a server's data to one file, and back."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import Annotated

import typer

from culture import __version__
from culture.cli.humanize import format_size
from culture.cli.local_servers import require_clear_choice, with_running_options
from culture.cli.options import Choices, ConfigFile, DataDir, Name
from culture.cli.output import confirm, fail
from culture.cli.progress import Progress
from culture.cli.server import background, pid_file
from culture.config import paths
from culture.config.load import ServerOptions, load_server
from culture.config.model import ServerConfig
from culture.lib.files import replace_file
from culture.lib.process.background import EndedEarly
from culture.server.auth.accounts import AccountsError
from culture.server.backup import restore as restoring
from culture.server.backup import tarball
from culture.server.backup.create import BackupDiskFull, Label, Source, create, data_files
from culture.server.backup.manifest import ACCOUNTS, CONFIG, TLS, BadBackup, Manifest
from culture.server.backup.restore import Unpacked
from culture.server.lock import DataLock
from culture.skills.history.sqlite.schema import STEPS as HISTORY
from culture.skills.ledger.store import STEPS as LEDGER
from culture.skills.urlindex.store import STEPS as URLINDEX

NOT_INCLUDED = "The history is in PostgreSQL and not in this file"


def backup(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", show_default=False, help="File to write.  [default: culture-<name>-<time>.tar.gz]"
        ),
    ] = None,
    with_tls: Annotated[
        bool, typer.Option("--with-tls", help="Include the certificates and keys of ~/.culture/tls.")
    ] = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Save the data of a server to one file; the server may be running.

    The file contains everything, secrets too: keep it as safe as those.
    """
    choices = with_running_options(Choices(config, name, None, None, data_dir))
    settings = choices.load().config
    folder = settings.data_dir.resolve()
    if not folder.is_dir():
        require_clear_choice(Choices(config, name, None, None, data_dir))
        fail(f"{settings.name} has no data in {folder}")
    now = time.time()
    target = (file or Path(f"culture-{settings.name}-{stamp(now)}.tar.gz")).absolute()
    sources = list(_sources(settings, folder, choices.config or paths.server_file(), with_tls))
    label = Label(settings.name, __version__, _kind(settings))
    total = sum(source.path.stat().st_size for source in sources if source.path.exists())
    try:
        with Progress("Copying", total) as copied, Progress("Packing", total) as packed:

            def pack(number: int) -> None:
                copied.close()  # a terminal has room for one of them
                packed.step(number)

            contents = create(target, label, sources, now, copied.step, pack)
    except FileExistsError:
        fail(f"{target} exists already, and is not changed")
    except BackupDiskFull as error:
        fail(str(error))
    except OSError as error:
        fail(f"cannot write {target}: {error.strerror}")
    packed_size = format_size(target.stat().st_size)
    typer.echo(
        f"{target}: {settings.name} as it is, {len(contents.files)} files, "
        f"{format_size(contents.size)} in {packed_size}."
    )
    if label.history != "sqlite":
        typer.echo(f"{NOT_INCLUDED}: back it up with pg_dump.", err=True)


def stamp(at: float) -> str:
    """Return a time (seconds since 1970) as text for a file name."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at))


def _kind(settings: ServerConfig) -> str:
    return "sqlite" if settings.history.store == "sqlite" else "postgresql"


def _sources(settings: ServerConfig, folder: Path, config: Path, with_tls: bool) -> Iterator[Source]:
    """Yield the files to back up; the configuration comes first, as a restore needs it first.

    ``folder``: the data folder. ``config``: the configuration file. ``with_tls``: include certificates and keys.
    """
    if config.is_file():
        yield Source(config, CONFIG)
    if settings.accounts_file.is_file():
        yield Source(settings.accounts_file, ACCOUNTS)
    if with_tls:
        keys = paths.home() / TLS
        yield from (Source(path, f"{TLS}/{path.name}") for path in sorted(keys.glob("*")) if path.is_file())
    yield from data_files(folder, _left_out)


def _left_out(path: Path) -> None:
    typer.echo(f"{path} is left out: it is not a regular file", err=True)


_KNOWN = {"history/history.db": len(HISTORY), "urlindex/links.db": len(URLINDEX), "ledger/ledger.db": len(LEDGER)}


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="Backup file.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Stop the server if it runs, and start it again with the same options.")
    ] = False,
    with_revoked: Annotated[
        bool, typer.Option("--with-revoked", help="Also reactivate accounts that were revoked since the backup.")
    ] = False,
    config: ConfigFile = None,
    name: Name = None,
    data_dir: DataDir = None,
) -> None:
    """Restore a server's data from a backup; the former data is kept aside.

    The backup is checked completely before anything is changed.
    """
    manifest, config_text = _read_manifest(file)
    choices = Choices(config, name, None, None, data_dir)
    note = pid_file.running(name or manifest.server)
    if note:
        choices = choices.over(Choices.parse(note.options))
    settings, is_new = _settings(choices, config_text)
    if settings.name != manifest.server:
        fail(
            f"this is a backup of {manifest.server}, not of {settings.name}: add --name {manifest.server} to restore it"
        )
    if note and not restart:
        fail(f"{settings.name} is running (pid {note.pid}): stop it first, or add --restart")
    folder = settings.data_dir.resolve()
    if folder.is_mount():
        fail(f"{folder} is a mount point, which cannot be replaced: keep the data in a folder inside it")
    confirm(f"Put the backup of {manifest.time} in place of {folder}?", yes)
    now = stamp(time.time())
    try:
        with (
            file.open("rb") as source,
            Progress("Unpacking", manifest.size) as bar,
            restoring.unpacked(source, folder, _KNOWN, now, bar.step) as new,
            _stopped(settings.name, note),
        ):
            bar.close()
            if new.accounts and not with_revoked:
                _keep_revoked(new.accounts, settings)
            _put_in_place(new, settings, folder, now)
            if is_new and new.config:
                _put_config(new.config, choices.config or paths.server_file())
    except BadBackup as bad:
        fail(f"{file} is not restored: {bad}")
    except OSError as error:
        fail(f"{file} is not restored: {error}")
    if config_text is not None and not is_new:
        typer.echo(f"The configuration was not changed; the one of {manifest.time} is culture.yaml in {file}.")
    if manifest.history != "sqlite":
        typer.echo(f"{NOT_INCLUDED}: restore it with psql or pg_restore.", err=True)


def _read_manifest(file: Path) -> tuple[Manifest, bytes | None]:
    try:
        with file.open("rb") as source:
            return tarball.peeked(source)
    except BadBackup as bad:
        fail(f"{file} is not restored: {bad}")
    except OSError as error:
        fail(f"cannot read {file}: {error.strerror}")


def _settings(choices: Choices, config_text: bytes | None) -> tuple[ServerConfig, bool]:
    """Return the server's configuration, and whether it comes from the backup.

    The backup's is used if this machine has no configuration file. ``config_text``: the file in the backup, None if it
    has none.
    """
    file = choices.config or paths.server_file()
    if file.exists() or config_text is None:
        return choices.load().config, False
    looked_at = file.with_name(f".{file.name}.restoring")
    replace_file(looked_at, config_text)
    try:
        return load_server(looked_at, ServerOptions(choices.name, data_dir=choices.data_dir)).config, True
    finally:
        looked_at.unlink()


@contextmanager
def _stopped(server: str, note: pid_file.ServerNote | None) -> Iterator[None]:
    """Stop a running server during the block, and start it again, even after an error.

    ``note``: what the server's pid file says; None if it does not run, and then nothing is done.
    """
    if note is None:
        yield
        return
    if pid_file.end(server) is False:
        fail(f"{server} was told to stop, but is still busy; nothing was restored")
    try:
        yield
    finally:
        try:
            started = background.start(server, note.options)
        except EndedEarly as early:
            fail(f"{server} does not start again: {early.text}")
        typer.echo(f"{server} is running again (pid {started.pid}).")


def _put_in_place(new: Unpacked, settings: ServerConfig, folder: Path, now: str) -> None:
    aside = _unused_folder(folder, now)
    lock = DataLock(folder)
    lock.acquire()
    try:
        is_kept = restoring.put_in_place(new.data, folder, aside)
    finally:
        lock.release()
    manifest = new.manifest
    typer.echo(
        f"{settings.name} is restored to {manifest.time}: {len(manifest.files)} files, {format_size(manifest.size)}."
    )
    if is_kept:
        typer.echo(f"The former data is in {aside}.")
    if new.accounts:
        _put_file(new.accounts, settings.accounts_file, now)
    for path in new.tls:
        _put_file(path, paths.home() / TLS / path.name, now)


def _keep_revoked(new: Path, settings: ServerConfig) -> None:
    """Revoke, in the restored accounts, the accounts that were revoked since the backup.

    ``new``: the file with the restored accounts.
    """
    try:
        names = restoring.keep_revoked(new, settings.accounts_file, settings.account_prefix)
    except AccountsError as error:
        typer.echo(f"Could not find out which accounts were revoked since the backup: {error}", err=True)
        return
    if names:
        typer.echo(
            f"Accounts revoked since the backup stay revoked (--with-revoked reactivates them): {', '.join(names)}."
        )


def _unused_folder(folder: Path, now: str) -> Path:
    """Return an unused path beside ``folder`` to which the former data can be moved.

    ``now``: the time as text for a file name.
    """
    names = (f"{folder.name}.before-{now}{further}" for further in chain([""], (f"-{number}" for number in count(2))))
    return next(path for path in map(folder.with_name, names) if not path.exists())


def _put_file(new: Path, path: Path, now: str) -> None:
    former = restoring.put_file(new, path, now)
    if former:
        typer.echo(f"The former {path.name} is {former}.")


def _put_config(new: Path, path: Path) -> None:
    replace_file(path, new.read_bytes())
    typer.echo(f"Wrote {path}.")
