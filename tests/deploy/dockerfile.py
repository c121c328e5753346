"""A small reader of Dockerfiles: their instructions, and what we demand of them."""

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

_KNOWN = {
    "FROM",
    "ARG",
    "ENV",
    "RUN",
    "COPY",
    "USER",
    "WORKDIR",
    "VOLUME",
    "EXPOSE",
    "HEALTHCHECK",
    "ENTRYPOINT",
    "CMD",
}
_BASE = re.compile(r"python:3\.\d+\.\d+-slim-[a-z]+(@sha256:[0-9a-f]{64})?")
_SECRET = re.compile(r"KEY|TOKEN|PASSWORD|SECRET")
_OPTION = re.compile(r"--[a-z-]+=\S+\s+")


@dataclass(frozen=True)
class Instruction:
    """One of them, its lines made one."""

    name: str
    rest: str

    @property
    def words(self) -> list[str]:
        """What it says without its options: the words of the exec form, or those between spaces."""
        text = re.sub(rf"^({_OPTION.pattern})+", "", self.rest).removeprefix("CMD ")
        found = json.loads(text) if text.startswith("[") else text.split()
        assert isinstance(found, list)
        return [str(word) for word in found]


def read(text: str) -> list[Instruction]:
    """The instructions in their order."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    whole = re.sub(r"\\\n", " ", "\n".join(lines))
    return [Instruction(*line.split(maxsplit=1)) for line in whole.splitlines() if line.strip()]


def problems(instructions: list[Instruction], root: Path, extras: set[str]) -> Iterator[str]:
    """What is wrong with them, a line each; ``extras`` are those of the package."""
    names = [each.name for each in instructions]
    last = {each.name: each for each in instructions}
    yield from (f"{name} is no instruction" for name in names if name not in _KNOWN)
    if names[:1] != ["FROM"] or not _BASE.fullmatch(instructions[0].rest):
        yield "FROM names no exact version"
    for name in ("HEALTHCHECK", "ENTRYPOINT", "CMD", "USER"):
        if name not in names:
            yield f"no {name}"
        elif name != "USER" and "[" not in last[name].rest:
            yield f"{name} is run by a shell, which keeps signals to itself"
    if "USER" in names and (last["USER"].rest in ("root", "0") or "RUN" in names[names.index("USER") :]):
        yield "runs as root"
    for each in instructions:
        yield from _one(each, root, extras)


def _one(each: Instruction, root: Path, extras: set[str]) -> Iterator[str]:
    if each.name in ("ENV", "ARG") and _SECRET.search(each.rest):
        yield f"{each.rest} is in the image for all to read"
    if each.name == "RUN":
        if subprocess.run(["sh", "-n", "-c", each.rest], capture_output=True, check=False).returncode:
            yield f"RUN {each.rest}: the shell does not understand it"
        if "apt-get install" in each.rest and "rm -rf /var/lib/apt/lists" not in each.rest:
            yield "the lists of apt stay in the image"
        for wanted in re.findall(r"pip install .*?'\.(?:\[([a-z,]+)\])?'", each.rest):
            if unknown := set(filter(None, wanted.split(","))) - extras:
                yield f"there is no extra {', '.join(sorted(unknown))}"
    if each.name == "COPY":
        for source in each.words[:-1]:
            if not (root / source).exists():
                yield f"COPY {source}: it is not there"
            elif not _is_sent(source, (root / ".dockerignore").read_text(encoding="utf-8")):
                yield f"COPY {source}: .dockerignore keeps it out"


def _is_sent(path: str, rules: str) -> bool:
    sent = True
    for rule in rules.split():
        if fnmatch(path, rule.removeprefix("!")):
            sent = rule.startswith("!")
    return sent
