"""Writes packages/: the parts of culture/ that other repositories take over whole, each importable by itself."""

import argparse
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent

_PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "{version}"
description = "{summary}"
readme = "README.md"
license = "MIT"
license-files = ["LICENSE"]
requires-python = "{python}"
dependencies = []

[tool.hatch.build.targets.wheel]
packages = ["{module}"]
"""

_README = """\
# {name}

{summary}

Generated from `{source}` of culture {version} by `make packages`: change it there. It needs the standard library alone.
To take it over, copy the folder `{module}` into your repository; nothing has to be installed.
"""


@dataclass(frozen=True, slots=True)
class Package:
    """One entry of ``[tool.assimilai]``."""

    name: str
    source: PurePosixPath
    path: PurePosixPath

    @property
    def module(self) -> str:
        """The name it is imported by in another repository."""
        return self.name.replace("-", "_")


def project() -> Mapping[str, str]:
    """The facts of pyproject.toml that a package shares."""
    facts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {"version": facts["version"], "python": facts["requires-python"]}


def listed() -> list[Package]:
    """The packages that pyproject.toml lists."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    return [
        Package(entry["name"], PurePosixPath(entry["source"]), PurePosixPath(entry["path"]))
        for entry in tool["assimilai"]["packages"]
    ]


def _sources(package: Package) -> Iterator[tuple[str, str]]:
    """The files of the source, importing themselves under their new name."""
    origin = ROOT / package.source
    old = ".".join(package.source.parts)
    for path in sorted(origin.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            text = path.read_text(encoding="utf-8")
            yield path.relative_to(origin).as_posix(), text.replace(old, package.module)


def files(package: Package) -> dict[str, str]:
    """Everything in the folder of a package: path → text."""
    docstring = (ROOT / package.source / "__init__.py").read_text(encoding="utf-8").split('"""')[1]
    facts = {
        **project(),
        "name": package.name,
        "module": package.module,
        "source": str(package.source),
        "summary": docstring.strip().splitlines()[0],
    }
    made = {
        "LICENSE": (ROOT / "LICENSE").read_text(encoding="utf-8"),
        "README.md": _README.format_map(facts),
        "pyproject.toml": _PYPROJECT.format_map(facts),
    }
    made.update((f"{package.module}/{name}", text) for name, text in _sources(package))
    return made


def write(package: Package, root: Path) -> None:
    """Put the package under ``root``, in place of what was there."""
    folder = root / package.path
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in files(package).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def main() -> None:
    """Write packages/ here, or into another repository."""
    parser = argparse.ArgumentParser(prog="make packages", description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT, help="the root of another repository")
    for package in listed():
        write(package, parser.parse_args().into)


if __name__ == "__main__":
    main()
