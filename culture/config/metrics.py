"""What culture.yaml may say about the figures that a monitoring system reads."""

import re
from typing import Annotated

from pydantic import AfterValidator

from culture.config.exposure import is_loopback
from culture.config.values import Settings

_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:\[\]@/]+)):(?P<port>[0-9]{1,5})")


def _endpoint(address: str) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(address)
    if found is None or int(found["port"]) > 65535:
        raise ValueError(f"{address!r} is no address to listen on: it looks like 127.0.0.1:9464")
    return found["ipv6"] or found["host"], int(found["port"])


def _address(text: str) -> str:
    _endpoint(text)
    return text


class Metrics(Settings):
    """Where they are read, in the format of Prometheus."""

    listen: Annotated[str, AfterValidator(_address)] | None = None

    @property
    def endpoint(self) -> tuple[str, int] | None:
        """The host and port to listen on; None: nowhere."""
        return None if self.listen is None else _endpoint(self.listen)

    @property
    def leaves_the_machine(self) -> bool:
        """Whether others can read them."""
        return self.endpoint is not None and not is_loopback(self.endpoint[0])
