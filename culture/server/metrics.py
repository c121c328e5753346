"""Metrics of the server in Prometheus' text format; none of them contains what a user said."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

log = logging.getLogger(__name__)

Labels = Mapping[str, str]
Sample = tuple[Labels, float]
Read = Callable[[], float | Iterable[Sample]]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metric(NamedTuple):
    """A metric: name, kind (gauge or counter), help text, and the function that reads its value."""

    name: str
    kind: str
    about: str
    read: Read


class Metrics:
    """The list of all metrics, to which parts of the server and skills add theirs."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}

    def gauge(self, name: str, about: str, read: Read) -> None:
        """Add a metric whose value goes up and down.

        ``about``: its help text. ``read``: returns its present value.
        """
        self._metrics[name] = Metric(name, "gauge", about, read)

    def counter(self, name: str, about: str, read: Read) -> None:
        """Add a metric whose value only grows; ``name`` ends with ``_total``.

        ``about``: its help text. ``read``: returns its present value.
        """
        self._metrics[name] = Metric(name, "counter", about, read)

    def text(self) -> str:
        """Return all metrics and their present values in Prometheus' text format.

        A metric that cannot be read is left out.
        """
        return "".join(row for metric in self._metrics.values() for row in _rows(metric))


def _rows(metric: Metric) -> list[str]:
    try:
        value = metric.read()
        samples = [({}, value)] if isinstance(value, int | float) else list(value)
    except Exception:
        log.exception("the metric %s cannot be read", metric.name)
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
