"""The comparison as JSON: written after a run, read again for its table."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.load import Run, medians
from bench.machine import describe
from bench.scenarios import Figure
from bench.servers import Server
from bench.targets import Medians

Results = dict[str, dict[str, list[Run]]]
"""The runs by scenario and server."""


def _by_server(runs: Mapping[str, Sequence[Run]]) -> dict[str, object]:
    return {
        server: {
            "medians": {figure.value: value for figure, value in medians(made).items()},
            "runs": [run.as_json() for run in made],
        }
        for server, made in runs.items()
    }


def record(results: Results, servers: Sequence[Server], pinned: bool) -> dict[str, object]:
    """Everything that was measured, and on what."""
    return {
        "machine": describe(),
        "servers": {server.name: server.version() for server in servers},
        "pinned": pinned,
        "scenarios": {scenario: _by_server(runs) for scenario, runs in results.items()},
    }


def read_medians(path: Path) -> dict[str, Medians]:
    """The medians of a record, or of the figures that a proof kept of one."""
    said = json.loads(path.read_text(encoding="utf-8"))
    scenarios = said.get("figures", said)["scenarios"]
    return {
        scenario: {
            server: {Figure(name): value for name, value in found["medians"].items()}
            for server, found in by_server.items()
        }
        for scenario, by_server in scenarios.items()
    }
