"""The files of deploy/ are what Docker expects, and keep to our rules; there is no engine here to ask."""

import copy
import os
import re
import stat
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from culture.config.load import load_agents
from tests.deploy import compose, dockerfile

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
TEXT = (DEPLOY / "docker-compose.yml").read_text(encoding="utf-8")
PARTS = ("server", "bridge", "orchestrator")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = set(PROJECT["optional-dependencies"])
VARIABLES = {"CULTURE_TEAM": "demo", "CULTURE_PROJECT": "/srv/demo"}


def test_the_compose_file_is_one() -> None:
    assert list(compose.problems(compose.load(TEXT), DEPLOY)) == []


def test_it_says_which_variables_it_needs() -> None:
    needed = set()
    variables: dict[str, str] = {}
    while True:
        try:
            compose.filled(compose.load(TEXT), variables)
            break
        except KeyError as missing:
            needed.add(missing.args[0])
            variables[missing.args[0]] = "said"
    assert needed == set(VARIABLES)
    mentioned = re.findall(r"\b(CULTURE_[A-Z]+)\b", TEXT.partition("name:")[0])
    assert set(re.findall(r"\{(CULTURE_[A-Z]+)", TEXT)) == set(mentioned)


@pytest.mark.requirement("N14", "O28")
def test_server_bridge_and_orchestrator_are_a_container_each_with_the_project_bound_into_the_last() -> None:
    services = compose.filled(compose.load(TEXT), VARIABLES)["services"]
    assert {*PARTS} <= services.keys()
    for part in PARTS:
        assert services[part]["build"]["dockerfile"] == f"deploy/Dockerfile.{part}"
        assert services[part]["network_mode"] == "service:network", "who restarts must not take the network along"
    assert "/srv/demo:/srv/demo" in services["orchestrator"]["volumes"], (
        "git keeps paths: they must be the same outside"
    )
    assert services["orchestrator"]["working_dir"] == "/srv/demo"
    assert not any("demo" in volume for part in ("server", "bridge") for volume in services[part]["volumes"])


def mounts(service: dict[str, Any]) -> set[str]:
    """What a service mounts, by its name outside."""
    return {volume.split(":")[0] for volume in service.get("volumes", ())}


def test_agents_containers_see_neither_the_files_nor_the_user_of_the_server() -> None:
    services = compose.filled(compose.load(TEXT), VARIABLES)["services"]
    server, orchestrator = services["server"], services["orchestrator"]
    assert mounts(server) == mounts(services["bridge"]) == {"server", "./culture.yaml"}
    assert mounts(orchestrator) == {"team", "./agents.yaml", "/srv/demo"}
    assert {services[part]["user"] for part in ("network", "server", "bridge")} == {"10001:10001"}
    assert orchestrator["user"] == "1000:1000"
    assert "pid" not in orchestrator and "secrets" not in server
    for part in PARTS:
        build = services[part]["build"]["args"]
        assert services[part]["user"] == f"{build['UID']}:{build['GID']}", "the volume belongs to the user of the image"
    address = compose.load((DEPLOY / "agents.yaml").read_text(encoding="utf-8"))["server"]
    assert address["user"] == server["user"].split(":")[0], "members tell nothing to another user on that port"
    settings = compose.load((DEPLOY / "culture.yaml").read_text(encoding="utf-8"))
    assert (address["name"], address["port"]) == (settings["name"], settings["listen"][0]["port"])
    assert load_agents(DEPLOY / "agents.yaml").config.server.user == "10001"


@pytest.mark.parametrize(
    ("service", "change", "told"),
    [
        ("server", {"image": "culture-server:latest"}, "version"),
        ("server", {"user": "root"}, "root"),
        ("server", {"healthcheck": {}}, "healthcheck"),
        ("network", {"ports": ["6697:6697"]}, "everybody"),
        ("bridge", {"environment": {"IRC_TOKEN": "abc"}}, "in the open"),
        ("bridge", {"depends_on": {"servant": {"condition": "service_healthy"}}}, "depends_on"),
        ("bridge", {"comand": ["bridge"]}, "comand"),
        ("orchestrator", {"secrets": ["OTHER"]}, "secret"),
        ("orchestrator", {"volumes": ["elsewhere:/var/lib/culture"]}, "elsewhere"),
        ("orchestrator", {"build": {"context": "..", "dockerfile": "deploy/Dockerfile.team"}}, "Dockerfile"),
        ("orchestrator", {"cap_drop": []}, "privileges"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_mistake_in_the_compose_file_is_found(service: str, change: dict[str, Any], told: str) -> None:
    file = copy.deepcopy(compose.load(TEXT))
    file["services"][service].update(change)
    assert [problem for problem in compose.problems(file, DEPLOY) if told in problem and service in problem]


@pytest.mark.parametrize("part", PARTS)
def test_a_dockerfile_is_one(part: str) -> None:
    text = (DEPLOY / f"Dockerfile.{part}").read_text(encoding="utf-8")
    assert list(dockerfile.problems(dockerfile.read(text), ROOT, EXTRAS)) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("python:3.11.14-slim-bookworm", "python:3.11-slim", "exact version"),
        ("USER culture\n", "", "USER"),
        ("USER culture", "USER root", "root"),
        ("ARG UID=1000", "ARG API_TOKEN", "for all to read"),
        ("[bridge,claude]", "[bridge,clawed]", "clawed"),
        ("deploy/with-secrets", "deploy/culture.yaml", ".dockerignore"),
        ("COPY culture", "COPY kultur", "not there"),
        ('CMD ["team", "up"]', "CMD team up", "shell"),
        ("HEALTHCHECK", "HEALTH", "HEALTH"),
        ("cd /src &&", "cd /src && (", "understand"),
    ],
)
def test_a_mistake_in_a_dockerfile_is_found(old: str, new: str, told: str) -> None:
    text = (DEPLOY / "Dockerfile.orchestrator").read_text(encoding="utf-8")
    assert old in text
    broken = dockerfile.read(text.replace(old, new))
    assert [problem for problem in dockerfile.problems(broken, ROOT, EXTRAS) if told in problem]


def test_an_image_has_what_building_the_package_takes_and_the_same_command_as_compose() -> None:
    services = compose.load(TEXT)["services"]
    needed = {"pyproject.toml", "culture", PROJECT["readme"], *PROJECT["license-files"], "constraints.txt"}
    for part in PARTS:
        found = dockerfile.read((DEPLOY / f"Dockerfile.{part}").read_text(encoding="utf-8"))
        copied = {word for each in found if each.name == "COPY" for word in each.words[:-1]}
        assert needed <= copied
        said = next(each.words for each in found if each.name == "CMD")
        assert services[part]["command"][: len(said)] == said
        assert services[part]["image"] == f"culture-{part}:{PROJECT['version']}"


def test_a_secret_is_a_file_outside_and_a_variable_inside(tmp_path: Path) -> None:
    script = DEPLOY / "with-secrets"
    assert script.stat().st_mode & stat.S_IXUSR
    (tmp_path / "ANTHROPIC_API_KEY").write_text("sk-1 2'\"$x\n")
    (tmp_path / "OPENAI_API_KEY").write_text("")
    (tmp_path / "not-a-name;x").write_text("no")
    told = "import os, json; print(json.dumps({k: v for k, v in os.environ.items() if k.endswith('KEY') or ';' in k}))"
    ran = subprocess.run(
        [script, "python3", "-c", told],
        env={"SECRETS": str(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == '{"ANTHROPIC_API_KEY": "sk-1 2\'\\"$x"}\n'
    empty = subprocess.run(
        [script, "echo", "on"], env={"SECRETS": str(tmp_path / "none")}, capture_output=True, check=True
    )
    assert empty.stdout == b"on\n"


def test_git_keeps_no_secrets_of_a_deployment() -> None:
    assert "/secrets/" in (DEPLOY / ".gitignore").read_text(encoding="utf-8").split()
