"""The address of a database as people may see it: without its password."""

from urllib.parse import urlsplit


def is_clear(url: str) -> bool:
    """Is it plain where the password ends? One with ``/``, ``?`` or ``#`` as they are would end elsewhere."""
    parts = urlsplit(url)
    return "@" not in parts.path + parts.query + parts.fragment


def shown(url: str) -> str:
    """The address without password and options; of one that is not clear, nothing."""
    if not is_clear(url):
        return "postgresql://…"
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    return f"{parts.scheme}://{user.partition(':')[0]}{at}{hosts}{parts.path}"
