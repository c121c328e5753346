"""Figures about the running server, in the text format of Prometheus; none of them holds what a user said."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

log = logging.getLogger(__name__)

Labels = Mapping[str, str]
Sample = tuple[Labels, float]
Read = Callable[[], float | Iterable[Sample]]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metric(NamedTuple):
    """One figure: what it is called, and how it is read when somebody asks."""

    name: str
    kind: str
    about: str
    read: Read


class Metrics:
    """All figures; whoever has one adds it."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}

    def gauge(self, name: str, about: str, read: Read) -> None:
        """A figure that goes up and down."""
        self._metrics[name] = Metric(name, "gauge", about, read)

    def counter(self, name: str, about: str, read: Read) -> None:
        """A figure that only grows; its name ends with ``_total``."""
        self._metrics[name] = Metric(name, "counter", about, read)

    def text(self) -> str:
        """All of them as they are now; one that cannot be read is left out."""
        return "".join(row for metric in self._metrics.values() for row in _rows(metric))


def _rows(metric: Metric) -> list[str]:
    try:
        value = metric.read()
        samples = [({}, value)] if isinstance(value, int | float) else list(value)
    except Exception:
        log.exception("the figure %s cannot be read", metric.name)
        return []
    head = [f"# HELP {metric.name} {metric.about}\n", f"# TYPE {metric.name} {metric.kind}\n"]
    return head + [f"{metric.name}{_labels(labels)} {_number(each)}\n" for labels, each in samples]


def _labels(labels: Labels) -> str:
    words = [f'{name}="{_escaped(value)}"' for name, value in labels.items()]
    return f"{{{','.join(words)}}}" if words else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
