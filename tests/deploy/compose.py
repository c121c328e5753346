"""A small reader of compose files: what the specification allows of what we use, and what we demand beyond it."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

_TOP = {"name": str, "services": dict, "volumes": dict, "secrets": dict}
_SERVICE: dict[str, type | tuple[type, ...]] = {
    "build": dict,
    "cap_drop": list,
    "command": list,
    "depends_on": dict,
    "entrypoint": list,
    "environment": dict,
    "healthcheck": dict,
    "image": str,
    "init": bool,
    "network_mode": str,
    "ports": list,
    "read_only": bool,
    "restart": str,
    "secrets": list,
    "security_opt": list,
    "stop_grace_period": str,
    "tmpfs": list,
    "user": str,
    "volumes": list,
    "working_dir": str,
}
_BUILD = {"context", "dockerfile", "args"}
_HEALTH = {"test", "interval", "timeout", "start_period", "retries"}
_CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}
_RESTARTS = {"no", "always", "on-failure", "unless-stopped"}
_DURATION = re.compile(r"\d+(ms|s|m|h)")
_VARIABLE = re.compile(r"\$(?:(?P<escaped>\$)|\{(?P<name>[A-Z_][A-Z0-9_]*)(?::(?P<how>[-?])(?P<rest>[^}]*))?\})")
_SECRET = re.compile(r"KEY|TOKEN|PASSWORD|SECRET")


def load(text: str) -> dict[str, Any]:
    """The file with its anchors and merges resolved, its variables as they are."""
    found = YAML(typ="safe", pure=True).load(text)
    assert isinstance(found, dict)
    return found


def filled(value: Any, variables: Mapping[str, str]) -> Any:
    """The value as compose fills its variables in; KeyError for one that is missing."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: _one(found, variables), value)
    if isinstance(value, list):
        return [filled(each, variables) for each in value]
    if isinstance(value, dict):
        return {key: filled(each, variables) for key, each in value.items()}
    return value


def _one(found: re.Match[str], variables: Mapping[str, str]) -> str:
    if found["escaped"]:
        return "$"
    said = variables.get(found["name"]) or (found["rest"] if found["how"] == "-" else None)
    if said is None:
        raise KeyError(found["name"])
    return said


def problems(file: dict[str, Any], folder: Path) -> Iterator[str]:
    """What is wrong with it, a line each."""
    for key, value in file.items():
        if not key.startswith("x-") and not isinstance(value, _TOP.get(key, ())):
            yield f"{key}: not known, or not of this type"
    for name, service in file.get("services", {}).items():
        for problem in (*_shape(service), *_links(service, file), *_safety(service), *_built(service, folder)):
            yield f"{name}: {problem}"


def _shape(service: dict[str, Any]) -> Iterator[str]:
    for key, value in service.items():
        if not isinstance(value, _SERVICE.get(key, ())):
            yield f"{key} is not known, or not of this type"
    if any(not isinstance(word, str) for key in ("command", "entrypoint", "ports") for word in service.get(key, ())):
        yield "a word that is no text"
    if any(not isinstance(value, str) for value in service.get("environment", {}).values()):
        yield "environment: a value that is no text"
    if service.get("restart") not in _RESTARTS:
        yield "restart is not said"
    health = service.get("healthcheck", {})
    if health.get("test", [""])[0] not in ("CMD", "CMD-SHELL") or health.keys() - _HEALTH:
        yield "no healthcheck"
    times = [health.get("interval", "1s"), health.get("timeout", "1s"), service.get("stop_grace_period", "1s")]
    if not all(_DURATION.fullmatch(str(time)) for time in times):
        yield "a duration that is none"


def _links(service: dict[str, Any], file: dict[str, Any]) -> Iterator[str]:
    services = file["services"]
    for name, how in service.get("depends_on", {}).items():
        if name not in services or how.get("condition") not in _CONDITIONS:
            yield f"depends_on {name}"
    mode = service.get("network_mode", "")
    if mode.startswith("service:") and mode.removeprefix("service:") not in services:
        yield f"network_mode {mode}"
    if mode and service.get("ports"):
        yield "ports belong to whoever has the network"
    for volume in service.get("volumes", ()):
        source = volume.split(":")[0]
        if not source.startswith((".", "/", "$")) and source not in file.get("volumes", {}):
            yield f"volume {source}"
    for secret in service.get("secrets", ()):
        if "file" not in (file.get("secrets", {}).get(secret) or {}):
            yield f"secret {secret} is no file"


def _safety(service: dict[str, Any]) -> Iterator[str]:
    _, _, tag = service.get("image", "").rpartition(":")
    if not re.fullmatch(r"\d+\.\d+\.\d+", tag):
        yield "image without a version"
    if not service.get("user") or re.match(r"(0|root)\b", service["user"]):
        yield "runs as root"
    if service.get("cap_drop") != ["ALL"] or "no-new-privileges:true" not in service.get("security_opt", ()):
        yield "has privileges"
    if not service.get("read_only") and not service.get("volumes"):
        yield "keeps what it writes in its container"
    for port in service.get("ports", ()):
        if not port.startswith("127.0.0.1:"):
            yield f"port {port} is for everybody"
    for name, value in service.get("environment", {}).items():
        if _SECRET.search(name) and value:
            yield f"{name} in the open"


def _built(service: dict[str, Any], folder: Path) -> Iterator[str]:
    build = service.get("build", {})
    context = folder / build.get("context", ".")
    if build.keys() - _BUILD or not (context / build.get("dockerfile", "Dockerfile")).is_file():
        yield "build: there is no such Dockerfile"
