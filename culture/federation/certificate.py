"""The certificate by which other servers know ours."""

from importlib import import_module
from pathlib import Path

from culture.config.listen_policy import Tls
from culture.config.model import ServerConfig

_DAYS = 36_500
"""The other side knows it by its fingerprint, and by nothing that could run out."""


def own(config: ServerConfig) -> Tls | None:
    """The one that was made for links, else that of the first listener with TLS; None where there is neither.

    Who was shown the first pins it: a listener that gets TLS later must not make us a stranger to them.
    """
    return _made(config) or next((each.tls for each in config.listen if each.tls is not None), None)


def ensured(config: ServerConfig) -> Tls:
    """The same; where there is none, one for links is made: who only dials needs no listener with TLS."""
    known = own(config)
    if known is not None:
        return known
    files = _files(config)
    # What makes certificates takes long to load, and hardly anybody needs it.
    import_module("culture.server.net.certificates").make([config.name], _DAYS, files.certificate, files.key)
    return files


def _made(config: ServerConfig) -> Tls | None:
    files = _files(config)
    return files if files.certificate.exists() and files.key.exists() else None


def _files(config: ServerConfig) -> Tls:
    folder: Path = config.data_dir / "federation"
    return Tls(certificate=folder / "link.pem", key=folder / "link.key")
